"""The allocators, one file each: reorder.operators.arena.base says what a member declares."""
