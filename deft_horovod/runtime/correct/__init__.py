"""What stands in for gradients that are still in flight."""
