"""Line caches, one feeding the next, and a GPU's view of them."""
