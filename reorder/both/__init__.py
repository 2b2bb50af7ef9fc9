"""Edge orders and tuple orders at once: fewer ones inside the runs of an edge ordering, at no or little I/O."""
