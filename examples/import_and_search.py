"""Import a transcript, then ask the colony what it knows; importing again adds nothing."""

import tempfile
from pathlib import Path

import aether

home = aether.init(tempfile.mkdtemp())
notes = Path(tempfile.mkdtemp(), "notes.md")
notes.write_text(
    "We decided to use PostgreSQL, because two services write.\n\nNever deploy on a Friday.\n",
    encoding="utf-8",
)
first = aether.import_transcripts([notes], home=home)
again = aether.import_transcripts([notes], home=home)
print(f"{first.items} items, then {again.items} new and {again.known} known")
print(aether.search_memory("why PostgreSQL", limit=1, home=home)[0]["content"])
