"""What a machine offers, and what is wrong with a set-up. Pure."""
