"""The scheduling methods, one file each: reorder.schedule.base says what a member is."""
