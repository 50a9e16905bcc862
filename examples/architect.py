"""The smallest architect: it reads a hand-off on stdin and prints the session JSON on stdout."""

import json
import sys

text = "" if sys.stdin.isatty() else sys.stdin.read()
if not text.strip():
    sys.exit('No hand-off on stdin. Run: aether compress --architect "command:python architect.py"')
handoff = json.loads(text)
session = {
    "id": handoff["compression_id"],
    "session_id": handoff["compression_id"],
    "compressed_at": handoff["prepared_at"],
    "summary": f"Phase {handoff['phase']} chose how state is stored.",
    "key_decisions": [
        {"decision": item["content"], "rationale": ""}
        for item in handoff["items"]
        if item["type"] == "decision"
    ],
    "outcomes": [],
    "high_value_items": [],
}
print(json.dumps(session))
