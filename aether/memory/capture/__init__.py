"""From the records of a conversation to notes."""
