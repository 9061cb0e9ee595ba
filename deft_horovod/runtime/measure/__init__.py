"""What training takes, measured while it runs."""
