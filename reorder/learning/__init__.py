"""Training of the weights behind learned orders, on generated networks or one's own."""
