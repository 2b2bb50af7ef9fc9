"""Libraries that inference is compared with, one module each."""
