"""Gradients in, averages out, updates applied."""
