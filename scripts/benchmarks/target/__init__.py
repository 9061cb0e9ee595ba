"""Time to a given loss, in real training."""
