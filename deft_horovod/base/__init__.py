"""Small data that every room uses."""
