"""One machine as a small cluster, and what computes on it."""
