"""Redaction: secrets taken out of whatever leaves the home."""
