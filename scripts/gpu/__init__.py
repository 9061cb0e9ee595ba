"""The GPU check."""
