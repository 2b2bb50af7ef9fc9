"""Line caches: levels, policies, prefetchers, and a GPU's view of them."""
