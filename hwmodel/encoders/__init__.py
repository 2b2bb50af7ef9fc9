"""The encoders; hwmodel.coding is what they are made with."""
