"""What setup.py needs to compile the extension."""
