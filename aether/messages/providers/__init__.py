"""What each provider accepts: its message format, its checks and its repairs."""
