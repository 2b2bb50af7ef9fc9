"""The walk of a forward pass over memory."""
