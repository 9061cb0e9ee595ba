"""How long a step takes on so many ranks of a kind of machine, by the simulator."""
