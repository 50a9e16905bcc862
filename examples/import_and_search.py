"""Import a transcript, then ask the colony what it knows; importing again adds nothing."""

from pathlib import Path

import aether

home = aether.init("colony/.aether")
Path("notes.md").write_text(
    "We decided to use PostgreSQL, because two services write.\n\nNever deploy on a Friday.\n",
    encoding="utf-8",
)
first = aether.import_transcripts(["notes.md"], home=home)
again = aether.import_transcripts(["notes.md"], home=home)
print(f"{first.items} items, then {again.items} new and {again.known} known")
print(aether.search_memory("why PostgreSQL", limit=1, home=home)[0]["content"])
