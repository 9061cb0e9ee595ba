"""The part that touches torch and Horovod: gradients in, plans at work, updates out."""
