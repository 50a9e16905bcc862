"""Text: words, sentences, likeness and extraction, without a model."""
