"""Claude Code: hooks that capture a session and give it the memory of earlier ones, and the plugin that installs them."""
