"""Each paper's claims, by module."""
