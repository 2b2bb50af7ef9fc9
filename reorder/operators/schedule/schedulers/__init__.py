"""The scheduling methods, one file each: reorder.operators.schedule.base says what a member is."""
