"""What no order can beat: bounds, best evictions, Compact Growth."""
