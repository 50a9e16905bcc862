"""Colony memory: three layers, signals and the colony's state, as pure functions."""
