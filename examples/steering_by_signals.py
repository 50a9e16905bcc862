"""Signals steer what an architect keeps: they are part of every hand-off while they last."""

import json
import tempfile

import aether

home = aether.init(tempfile.mkdtemp())
aether.add_working_memory_item(
    "The importer reads 40 MB/s; the index takes most of the time.", "outcome", 0.6, home=home
)
aether.emit_signal("FOCUS", "speed of the importer", home=home)
aether.emit_signal("REDIRECT", "no new dependencies", home=home)
path = aether.prepare_compression_data(1, manual=True, home=home)
for signal in json.loads(path.read_text(encoding="utf-8"))["signals"]:
    print(f"{signal['type']} {signal['effective_strength']:.1f} {signal['metadata']['context']}")
