"""The tuple orders, one file each: reorder.tuples.base says what a member declares."""
