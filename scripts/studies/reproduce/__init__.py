"""Published comparisons, played by the simulator."""
