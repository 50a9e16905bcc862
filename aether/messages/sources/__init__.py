"""Transcript formats that can be imported."""
