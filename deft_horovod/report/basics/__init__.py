"""What the parts of a report are made of."""
