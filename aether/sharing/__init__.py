"""Sharing: a colony on several machines. Nothing imports this package but `aether share` and homes that are shared."""
