"""Redaction: secrets are replaced in everything that leaves the home, and private text is never stored."""
