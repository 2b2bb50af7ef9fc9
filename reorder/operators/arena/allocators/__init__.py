"""The allocators: reorder.operators.arena.base says what a member declares."""
