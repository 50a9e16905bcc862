"""Golden summaries: what a person would read of one session, by each strategy, without a model."""

import os
from pathlib import Path

from aether.architects import backend
from aether.architects.base import Settings
from aether.architects.request import SUMMARIES, summary_request
from aether.conversation.facts import merged_facts, removed_texts
from aether.conversation.shapes import Facts, Summary, SummaryTask, task_as_json
from aether.conversation.summary import parsed, rendered
from aether.text.summary_checks import EMPTY, model_fault
from aether.tokens.estimate import estimate
from tests.conversation.conversations import bash, conversation, facts_of, model, tool, user
from tests.tables import rows

GOLDEN = Path(__file__).parents[1] / "golden" / "summaries"
MONDAY = (
    user(
        "Our import job in src/ingest/load.py reads whole files into memory and dies on big.jsonl (ticket OPS-4417). "
        "Make it stream. Never change the record format, and keep the peak below 200 MB."
    ),
    model("I will look at the loader first."),
    tool("Read", "     1→def load(path):\n     2→    return path.read_text().splitlines()", file_path="src/ingest/load.py"),
    bash("pytest -q tests/ingest", "Exit code 1\nE   MemoryError\n1 failed, 11 passed", failed=True),
    model("The test of big.jsonl fails because the whole file is held twice. We decided to read it line by line because "
          "orjson takes bytes."),
    tool("Edit", file_path="src/ingest/load.py", old_string="return path.read_text()", new_string="def lines(path): ..."),
    tool("Write", file_path="tests/ingest/test_stream.py", content="def test_peak(): ...\n"),
    bash("pytest -q tests/ingest", "13 passed in 4.21s"),
    model("The loader streams now; the peak of big.jsonl is 61 MB. Shall I use gzip for the archive or keep it plain?"),
    user("keep it plain"),
)  # fmt: skip
TUESDAY = (
    user("Actually, the archive must go to s3://ingest-archive/2026 as well. Use the profile ci-writer."),
    bash("aws s3 ls s3://ingest-archive/2026 --profile ci-writer", "AccessDenied: not authorized for eu-west-1", failed=True),
    model("The upload is blocked: ci-writer is denied in eu-west-1. I asked for access in OPS-4420."),
    bash("make lint", None),
)  # fmt: skip


def compacted(strategy, parts, before):
    """Return the summary that stands for `parts` and for the summary before."""
    version, previous = (before.version + 1, before.prose) if before else (1, "")
    messages = conversation(*parts)
    places = range(len(messages))
    facts = facts_of(messages, places)
    facts = merged_facts(before.facts if before else Facts(), facts)
    facts = facts._replace(lookups=(*facts.lookups, f"{len(messages)} messages in full: archive {version}"))
    task = SummaryTask(strategy, version, removed_texts(messages, places), previous, facts, 220)
    asked = summary_request(task_as_json(task))
    prose = backend("extractive")[0].complete(asked, settings=Settings(), count=estimate).text
    texts = [said.text for said in task.said]
    # Without anything to say beside the facts, the text is empty; of two requests the ledger copies the longer.
    faults = {"", EMPTY, *(["copies one message"] if strategy == "requirements_ledger" else [])}
    assert model_fault(prose, given=texts, before=previous, most_tokens=220, count=estimate) in faults
    return Summary(version, facts, prose)


@rows("strategy", SUMMARIES)
def test_two_days_of_work_read_as_their_golden_summaries(strategy):
    """The texts stand in files for review; AETHER_GOLDEN=write writes them anew."""
    monday = compacted(strategy, MONDAY, None)
    tuesday = compacted(strategy, TUESDAY, parsed(rendered(monday)))
    text = f"{rendered(monday)}\n\n{rendered(tuesday)}\n"
    golden = GOLDEN / f"{strategy}.txt"
    if os.environ.get("AETHER_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")

    assert text == golden.read_text(encoding="utf-8")
