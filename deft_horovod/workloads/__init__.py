"""Models as numbers: layers with their tensors and their share of the arithmetic. Pure."""
