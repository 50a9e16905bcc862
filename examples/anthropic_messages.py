"""The arguments of the Anthropic SDK's `messages.create`, made to fit; the caller keeps the whole list."""

import tempfile

import aether
from aether.frameworks.anthropic_sdk import compacted

home = aether.init(tempfile.mkdtemp())
messages = []
for nth in range(20):
    messages.append({"role": "user", "content": f"Read chapter {nth}."})
    request = {"model": "claude-haiku-5-5", "max_tokens": 300, "system": "Be brief.", "messages": messages}
    fitting = compacted("book-club", request, window=4_000, home=home)
    # answer = client.messages.create(**fitting) - with client=client above, the provider counts
    messages.append({"role": "assistant", "content": f"Chapter {nth} is about ants. " * 30})

sent = fitting["messages"]
print(len(sent), "messages are sent instead of 39; the first:", sent[0]["content"])
print("and the summary of what is not sent:")
print(next(one["content"] for one in sent if "<COMPACT-SUMMARY" in str(one)))
