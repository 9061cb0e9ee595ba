"""What a user writes, and what is wrong with it, by line."""
