"""The replacement policies of line caches, one file each."""
