"""What late updates cost in accuracy."""
