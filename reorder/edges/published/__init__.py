"""Orders made as their papers publish them: Connection Reordering, EGO, GO."""
