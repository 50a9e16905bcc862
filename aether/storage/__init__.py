"""Storage: where redacted copies of what a compaction replaced are kept, outside the home."""
