"""The papers' figures computed again, and their printed claims beside what is found."""
