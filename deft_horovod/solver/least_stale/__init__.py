"""The least stale plan that hides the communication."""
