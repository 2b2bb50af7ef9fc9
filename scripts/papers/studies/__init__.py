"""The studies: one file each."""
