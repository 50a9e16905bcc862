"""A research session of three windows: every turn fits, the first facts stay, and all of it can be had back."""

import tempfile

import aether

home = aether.init(tempfile.mkdtemp())
WINDOW, PAPERS = 8_000, 80  # some 300 tokens each
messages = [
    {"role": "user", "content": "Find out why bees leave. The budget is 5,000 EUR; never contact the press."}
]
said, rounds, largest = list(messages), 0, 0
for nth in range(PAPERS):
    asked = {"role": "user", "content": f"Read paper {nth}."}
    ready = aether.preflight("bees", [*messages, asked], window=WINDOW, home=home)
    messages, rounds = ready.messages, rounds + ready.triggered
    largest = max(largest, ready.tokens_after)
    answer = {"role": "assistant", "content": f"Paper {nth} finds that mites matter. " * 30}
    messages, said = [*messages, answer], [*said, asked, answer]

summaries = str(messages).count("SUMMARY v")
print("always fits:", largest < WINDOW, "- rounds:", rounds >= 3, "- one summary:", summaries == 1)
print("first of all:", messages[0]["content"])
for _ in range(rounds):
    whole = aether.undo_compaction("bees", home=home).messages
print("had back word for word:", whole == said[: len(whole)], "- of three windows:", len(whole) > 100)
