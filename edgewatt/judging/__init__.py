"""What an order costs on a machine, and orders that a search makes for it with that as the judge."""
