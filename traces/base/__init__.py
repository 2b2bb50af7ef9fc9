"""What every part of edgewatt stands on: errors, registries, files, archives, shipped data."""
