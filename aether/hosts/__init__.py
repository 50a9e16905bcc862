"""Hosts: programs whose sessions aether remembers. A host is one module and one row of `HOSTS`.

The module translates: `event_of` the host's payload into an event with the names of `aether.hosts.hook`, `speech_of` what
only the host's log of the session holds, `output` the text for the model, and `message` one for the user; `edit` says how
its settings are changed, so that it reports its `EVENTS`. Everything else, from the spool to the brief, is the same for all.
"""

# The module that translates the events of each host.
HOSTS = {
    "claude-code": "aether.hosts.claude_code.event",
    "codex": "aether.hosts.codex_hooks",
    "gemini-cli": "aether.hosts.gemini_hooks",
    "copilot": "aether.hosts.copilot_hooks",
    "cursor": "aether.hosts.cursor_hooks",
    "opencode": "aether.hosts.opencode_hooks",
}
DEFAULT_HOST = "claude-code"
