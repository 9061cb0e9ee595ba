"""Traces of a running job."""
