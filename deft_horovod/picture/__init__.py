"""Figures of plans and predictions."""
