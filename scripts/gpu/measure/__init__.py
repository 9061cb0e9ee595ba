"""What the GPU check measures."""
