"""The replacement policies of line caches."""
