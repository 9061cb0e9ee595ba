"""Studies: what late updates cost, and what others have published."""
