"""Where each array of a network lies in memory."""
