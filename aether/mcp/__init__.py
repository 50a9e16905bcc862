"""The MCP server: aether's memory, and the tools of the official memory server over it, for any MCP client."""
