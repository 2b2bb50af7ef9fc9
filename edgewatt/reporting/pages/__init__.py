"""Pages about one thing: an order, a cache, an arena, plans patch by patch."""
