"""Links: opened, measured, chosen."""
