"""Orders that fuse layers: groups of neighbouring depths in strips, and plans of which depths to fuse."""
