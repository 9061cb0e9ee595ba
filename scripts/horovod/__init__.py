"""Horovod's source tree, and its wheel."""
