"""What EON learns in and by: its frontiers and caches, its attention."""
