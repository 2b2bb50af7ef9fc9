"""The tuple orders, one file each: reorder.cdr.base says what a member declares."""
