"""Every change can be looked at, taken back, and seen as it was."""

import tempfile

import aether

home = aether.init(tempfile.mkdtemp())
item = aether.add_working_memory_item("The limit is 30 requests a second.", "fact", home=home)
before = aether.log(limit=1, home=home)[0].revision
aether.update_working_memory_item(item, {"content": "The limit is 60 requests a second."}, home=home)

then = aether.show("memory", revision=before, home=home)
print("then:", then["working_memory"]["items"][0]["content"])
print("now: ", aether.list_working_memory_items(home=home)[0]["content"])
print("undid:", aether.undo(home=home).operation)
print("now: ", aether.list_working_memory_items(home=home)[0]["content"])
