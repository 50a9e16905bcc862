"""Events, and the exporters that send them without ever delaying or breaking the work."""
