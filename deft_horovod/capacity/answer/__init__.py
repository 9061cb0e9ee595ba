"""What is told of a schedule or of a packing."""
