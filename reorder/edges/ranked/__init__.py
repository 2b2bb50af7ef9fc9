"""Orders along a rank of the whole network's neurons: by its graph, its degrees or its positions."""
