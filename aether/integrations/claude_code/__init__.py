"""Claude Code: hooks that capture a session and tell it what is remembered, and the plugin that brings them."""
