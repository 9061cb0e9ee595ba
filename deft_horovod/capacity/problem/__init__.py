"""Jobs and machines as numbers, and what a schedule of them is."""
