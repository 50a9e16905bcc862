"""Messages of people, models and tools, read from any format, checked, repaired and converted."""
