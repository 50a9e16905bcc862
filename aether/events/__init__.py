"""Events: what happened, carried away by exporters that never get in the way of the work."""
