"""Line caches: levels and policies."""
