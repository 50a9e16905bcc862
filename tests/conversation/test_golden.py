"""Golden transcripts: one small conversation, and what each policy makes of it, as a person can read it.

A line is one message before: `=` it stays, `!` it stays because it is protected, `~` it stays shorter, `-` it is
removed; `+` begins what is new, the summary and what was shortened, with its whole text. AETHER_GOLDEN=write writes
the files anew: `AETHER_GOLDEN=write pytest tests/conversation/test_golden.py`.
"""

import os
from itertools import chain
from pathlib import Path

from aether.architects import backend
from aether.architects.base import Settings
from aether.architects.request import summary_request
from aether.conversation.plan import apply, plan
from aether.conversation.policy import POLICIES
from aether.conversation.shapes import task_as_json
from aether.messages.convert import read
from aether.messages.model import Message
from aether.tokens.count import message_tokens
from aether.tokens.estimate import estimate
from tests.conversation.conversations import bash, model, tool, user
from tests.tables import rows

GOLDEN = Path(__file__).parents[1] / "golden" / "compaction"
# The conversation takes so much of its window: every policy fires.
USED = 0.92
TEXT_WIDTH = 84

LOADER = "\n".join(f"{at:6}→    records.append(parse(raw, encoding=None))" for at in range(1, 24))
LOG = "\n".join(
    f"tests/ingest/test_{name}.py::test_{name} PASSED" for name in ("load", "parse", "rows", "types")
)
TALK = (
    user("Our import job in src/ingest/load.py reads whole files into memory and dies on big.jsonl (ticket OPS-4417). "
         "Make it stream. Never change the record format, and keep the peak below 200 MB."),
    [{"role": "user", "meta": {"protected": True, "label": "rule"},
      "content": "For the whole session: nobody pushes to main; open a pull request against release/7.2 instead."}],
    model("I will look at the loader and at its tests first."),
    bash("ls src/ingest", "__init__.py\nload.py\nparse.py\nrows.py"),
    bash("grep -rn 'def load' src", "src/ingest/load.py:12:def load(path):"),
    tool("Read", LOADER, file_path="src/ingest/load.py"),
    bash("pytest -q tests/ingest", "Exit code 1\nE   MemoryError\n1 failed, 11 passed", failed=True),
    model("The test of big.jsonl fails because the whole file is held twice. We decided to read it line by line, "
          "because orjson takes bytes."),
    tool("Edit", file_path="src/ingest/load.py", old_string="return path.read_text()", new_string="def lines(path): ..."),
    tool("Write", file_path="tests/ingest/test_stream.py", content="def test_peak():\n    assert peak() < 200\n" * 6),
    bash("pytest -v tests/ingest", LOG + "\n4 passed in 4.21s"),
    model("The loader streams now; the peak of big.jsonl is 61 MB. Shall I use gzip for the archive or keep it plain?"),
    user("keep it plain"),
    model("Plain it stays. The archive is written to /var/lib/ingest/archive."),
    user("Please look at src/ingest/rows.py too: Miriam says that empty rows are counted twice since 2026-02-11."),
    bash("git log --oneline -3 src/ingest/rows.py", "9c41e07 Count rows in one place\n51b2a90 Skip comments\n0aa1f3c Read rows"),
    tool("Read", "\n".join(f"{at:6}→    total += count_row(checked(row))" for at in range(1, 16)), file_path="src/ingest/rows.py"),
    model("Commit 9c41e07 counts a row when it is read and again when it is checked. I decided to count it when it is "
          "checked only, because comments are skipped before that."),
    tool("Edit", file_path="src/ingest/rows.py", old_string="total += 1", new_string="pass"),
    bash("pytest -q tests/ingest/test_rows.py", "Exit code 1\nE   assert 41 == 40\n1 failed, 7 passed", failed=True),
    model("One test expected the doubled count. The fixture rows_2026.jsonl has 40 rows, so 40 is right; I will correct the test."),
    tool("Edit", file_path="tests/ingest/test_rows.py", old_string="== 41", new_string="== 40"),
    bash("pytest -q tests/ingest", "15 passed in 5.02s"),
    model("All 15 tests pass; empty rows are counted once."),
    user("Actually, the archive must go to s3://ingest-archive/2026 as well. Use the profile ci-writer."),
    bash("aws s3 ls s3://ingest-archive/2026 --profile ci-writer", "AccessDenied: not authorized for eu-west-1", failed=True),
    model("The upload is blocked: ci-writer is denied in eu-west-1. I asked for access in OPS-4420."),
    user("Access is granted. Try again, and tell me how many objects there are."),
    bash("aws s3 ls s3://ingest-archive/2026 --profile ci-writer", "2026-03-01 part-000.jsonl\n2026-03-02 part-001.jsonl"),
    model("There are two objects, part-000.jsonl and part-001.jsonl."),
    user("Good. Now write the changelog entry for OPS-4417."),
)  # fmt: skip


def compacted(policy):
    """Return the conversation, and what the policy makes of it; the summary is written without a model."""
    messages = read(list(chain.from_iterable(TALK)), "anthropic")
    # Few are enough to be kept as they are, for the conversation is short.
    policy = policy._replace(keep_recent_turns=2, keep_tool_pairs=2, reserve=100)
    window = int(sum(message_tokens(one, estimate) for one in messages) / USED)
    made = plan(messages, policy, estimate, window=window, pointer=lambda at: f"history.jsonl n={at + 1}")
    prose = None
    if made.task:
        asked = summary_request(task_as_json(made.task))
        prose = backend("extractive")[0].complete(asked, settings=Settings(), count=estimate).text
    return messages, window, apply(made, prose)


def reported(message: Message) -> str:
    """Return what a message says, on one line."""
    said = [
        f"[{block.tool}] {block.text}" if block.kind == "call" else block.text for block in message.blocks
    ]
    text = " ".join(" ".join(said).split())
    return text if len(text) <= TEXT_WIDTH else f"{text[: TEXT_WIDTH - 1]}…"


def transcript(policy) -> str:
    """Return before and after, message by message."""
    messages, window, result = compacted(policy)
    after = {
        place: message
        for place, message in zip(result.places, result.messages, strict=True)
        if place is not None
    }
    lines = [
        f"policy {policy.name}, window {window}",
        f"{result.tokens_before} tokens become {result.tokens_after}, {len(messages)} messages become {len(result.messages)}",
        *(f"step: {step}" for step in result.steps),
        *(f"finding: {finding.code}: {finding.message}" for finding in result.findings),
        "",
    ]
    new = [f"+ {'summary' if at is None else at}: {one.blocks[0].text}" for at, one in zip(result.places, result.messages, strict=True)
           if at is None or one is not messages[at]]  # fmt: skip
    for at, message in enumerate(messages):
        mark = (
            "-"
            if at not in after
            else "~"
            if after[at] is not message
            else "!"
            if at in result.protected
            else "="
        )
        lines.append(
            f"{mark} {at:2} {message_tokens(message, estimate):4} {message.role:9} {reported(message)}".rstrip()
        )
    return "\n".join([*lines, *(f"\n{one}" for one in new)]) + "\n"


@rows("name", POLICIES)
def test_a_conversation_reads_as_its_golden_transcript(name):
    golden = GOLDEN / f"{name}.txt"
    text = transcript(POLICIES[name])
    if os.environ.get("AETHER_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")

    assert text == golden.read_text(encoding="utf-8")


def test_there_is_a_transcript_for_each_policy_and_no_other():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(POLICIES)


@rows("name", POLICIES)
def test_each_of_them_says_what_must_not_be_lost(name):
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    before, _, new = text.partition("\n\n")[2].partition("\n\n")

    assert "! " in before
    assert "=  0" in before
    assert before.splitlines()[-1].startswith("= ")
    if "+ summary" in new:
        assert "src/ingest/load.py" in new
