"""The study of harm: what the error of a gradient tells about the loss of accuracy."""
