"""What late updates cost in accuracy, and which plans are affordable. Pure."""
