"""Hosts: programs whose sessions aether remembers. A host is one package and one row of `HOSTS`.

The module of the row translates: `event_of` the host's payload into an event with the names of `aether.hosts.hook`,
`speech_of` what only the host's transcript holds, `output` the text for the model, and `message` one for the user.
Everything else, from the spool to the brief, is the same for all hosts.
"""

# The module that translates the events of each host.
HOSTS = {"claude-code": "aether.hosts.claude_code.event"}
DEFAULT_HOST = "claude-code"
