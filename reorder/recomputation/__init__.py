"""Computing results again where that lowers the peak of a schedule."""
