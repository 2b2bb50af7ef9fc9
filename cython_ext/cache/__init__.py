"""Cache levels and what their lines hold."""
