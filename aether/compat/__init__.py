"""Adapters that keep the names of the original projects."""
