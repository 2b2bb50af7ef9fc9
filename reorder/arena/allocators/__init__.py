"""The allocators, one file each: reorder.arena.base says what a member declares."""
