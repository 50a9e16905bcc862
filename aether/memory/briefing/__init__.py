"""Briefings: the extract of memory that a session gets."""
