"""Schemas: what a document may be, and how a document of an older version becomes one of today."""
