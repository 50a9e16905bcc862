"""A conversation that ages in the archive, by a clock that moves, and comes back as it was."""

import tempfile
from datetime import datetime, timedelta

import aether

home = aether.init(tempfile.mkdtemp())
start = datetime.fromisoformat("2026-01-05T10:00:00Z")
texts = [f"Module {n} reads conf/part{n}.toml. It was written by a former colleague." for n in range(6)]
texts[2] = "We decided to keep the state as JSON, because people read it."
said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
talk = {"id": "talk", "title": "Modules", "created_at": start.isoformat(), "messages": said}
aether.archive_conversations([talk], home=home)

for days in (29, 30, 90, 365):
    aether.age_archive(now=start + timedelta(days=days), forever=True, home=home)
    (found,) = aether.list_archived(home=home)
    print(days, "days:", found.level)
why = aether.explain_retention("talk", now=start + timedelta(days=365), home=home)
print("its age asks for", why["age_level"], "- its importance keeps the", why["retention_level"])

again = aether.restore_conversation("talk", home=home)
print("exactly as it was:", again.exact and again.conversation == talk)
print([hit.id for hit in aether.search_archive("state as JSON", home=home)])
