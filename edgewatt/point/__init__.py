"""One configured point: its steps, and how it becomes a record."""
