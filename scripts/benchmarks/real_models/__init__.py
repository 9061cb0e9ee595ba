"""Models that really compute, on links that are slow."""
