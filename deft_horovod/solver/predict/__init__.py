"""What a plan will do, by a profile."""
