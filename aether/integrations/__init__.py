"""Integrations: foreign interfaces that ask for an object, each method one call of an operation."""
