"""Tokens: how much a model has to read."""
