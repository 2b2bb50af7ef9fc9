"""What a network checks of its connections."""
