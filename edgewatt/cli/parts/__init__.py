"""What commands are built from."""
