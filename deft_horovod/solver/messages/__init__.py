"""How gradients become messages."""
