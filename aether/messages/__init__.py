"""Messages: what people, models and tools said to each other, read from any format."""
