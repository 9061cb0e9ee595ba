"""Subcommands about machines: which ones jobs need, and when."""
