"""Line caches: levels, policies, prefetchers."""
