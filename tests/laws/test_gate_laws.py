"""Law: what waits for a person reaches no model, by no surface that renders memory; and a decision undone was never made."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether
from aether.api import briefing, closing, compress, drain, handoffs, importing, recall, review, timeline
from aether.api.home import read
from aether.architects.request import session_request
from aether.errors import AetherError, Refused
from aether.hosts import HOSTS, hook
from aether.mcp import catalogue, tools
from aether.memory import gate
from aether.memory.handoff import session_room
from aether.store import authors, documents
from tests import homes
from tests.hook_player import entry, put

CONFIG = '[memory]\nagents = "propose"\n'
# The words of the agent in each door, of which none is in anything else.
WORDS = {
    "tool": "Quokkas run the nightly export",
    "caste": "Wombats own the billing queue",
    "hook": "Numbats finished the schema work",
    "import": "Bilbies wrote the imported report",
    "close": "Dingoes stand at the closing gate",
    "architect": "Emus summarise the prepared phase",
    "summary": "Kookaburras compacted the long conversation",
}
QUESTION = (
    "What about the nightly export of Quokkas, the Wombats, Numbats, Bilbies, Dingoes, Emus and Kookaburras?"
)


def proposing(directory: Path, mode: str = "propose") -> Path:
    """Return a home whose person lets agents only propose."""
    home = homes.fresh(directory)
    (home / "config.toml").write_text(CONFIG.replace("propose", mode))
    return home


def tool(name, home, /, **arguments):
    """Return the answer of a tool of MCP, called as the server calls it."""
    pytest.importorskip("mcp")
    from aether.mcp.server import _as_agent

    (chosen,) = (one for one in catalogue.tools_of("all") if one.name == name)
    return _as_agent(chosen, {**arguments, "home": home}).text


def answer_of(words, quote):
    return {"state": [{"text": f"{words}.", "quote": quote}], "summary": f"{words}, in short."}


def fill(home, directory):
    """State something through every door; the person's and the machine's words pass."""
    asked = "Please move the invoices to the new table."
    put(
        home,
        entry("UserPromptSubmit", "c-one", prompt=asked, prompt_id="p1"),
        entry("Stop", "c-one", message=f"{WORDS['hook']}. The invoices are moved.", prompt_id="p1"),
    )
    drain.drain(home)
    aether.add_working_memory_item(f"{WORDS['caste']}.", "decision", home=home, caste="builder")
    transcript = directory / "talk.jsonl"
    lines = [
        {"role": "user", "content": "Summarise it."},
        {"role": "assistant", "content": f"{WORDS['import']}."},
    ]
    transcript.write_text("\n".join(map(json.dumps, lines)))
    importing.import_transcripts([transcript], home=home)
    transcript.unlink()
    tool("remember", home, content=f"{WORDS['tool']}.", type="decision")
    tool("close_session", home, **answer_of(WORDS["close"], "move the invoices"), session="c-one")
    aether.add_working_memory_item("The person types a long enough note of their own.", "decision", home=home)
    compress.compress(0, home=home, architect=lambda handoff: {
        "session_id": handoff["compression_id"], "id": handoff["compression_id"], "compressed_at": handoff["prepared_at"],
        "key_decisions": [], "outcomes": [{"result": WORDS["architect"], "impact": ""}],
        "summary": f"{WORDS['architect']}, as the phase ended.",
    })  # fmt: skip
    aether.add_working_memory_item("Ship the table on Friday.", "decision", home=home)
    compress.ingest_summary(home, f"{WORDS['summary']}. The table ships.")
    aether.add_working_memory_item("Tell the customers first.", "constraint", home=home)


def briefs(home):
    for source in ("startup", "resume", "compact", "clear"):
        yield f"brief {source}", briefing.session_brief(home, source, "c-two")
    for caste in ("builder", "scout", ""):
        yield f"brief of {caste}", briefing.subagent_brief(home, caste, "c-two")
    yield "brief as data", briefing.brief(home)


def of_hosts(home):
    common = {"session_id": "c-three", "cwd": str(home.parent), "conversation_id": "c-three"}
    for name in HOSTS:
        for event in hook.EVENTS:
            payload = {
                **common, "hook_event_name": event, "prompt": QUESTION, "source": "startup", "agent_type": "builder",
                "timestamp": f"{name} {event}",
            }  # fmt: skip
            yield f"hook {name} {event}", hook.main([name, event], json.dumps(payload).encode())[1]


def of_tools(home):
    yield "mcp recall", tool("recall", home, query=QUESTION, limit=50)
    yield "mcp get", tool("get", home, ids=[*documents.NAMES[:-1]])
    yield "mcp status", tool("status", home)
    yield "mcp signals", tool("signals", home)
    yield "mcp graph", tool("read_graph", home)
    yield "mcp claims", tool("claim", home)
    yield "mcp inbox", tool("inbox", home, name="builder")
    yield "mcp prepare", tool("compress", home, action="prepare")
    from aether.mcp import server

    yield "mcp memory", server.overview(home)
    yield "mcp sessions", server.sessions(home)
    memory = read(home).documents["memory"]
    for session in memory["short_term_memory"]["sessions"]:
        yield "mcp session", server.entry(session["session_id"], home)
        yield "mcp file", tool("timeline", home, id=session["session_id"])
    yield "mcp prompt", server.compress_prompt("", str(home))
    yield "mcp file", tool("file_history", home, path="invoices.py")


def of_architects(home):
    prepared = aether.prepare_compression_data(0, home=home, manual=True)
    if prepared:
        handoff = handoffs.read_handoff(prepared)
        yield "hand-off", handoff
        yield "prompt", session_request({**handoff, "target_tokens": session_room(handoff)}).prompt
    work = closing.unclosed(read(home))
    if work:
        yield "closing", closing.handoff_of(read(home), work)


def of_search(home):
    for query in (QUESTION, *WORDS.values()):
        yield "search", aether.search_memory(query, home=home)
        yield "recall", recall.recall(query, home=home)
    yield "items", aether.list_working_memory_items(home=home)
    yield "timeline", timeline.timeline(home=home)
    yield "report", aether.report(home=home) if hasattr(aether, "report") else ""


def rendered(home):
    """Return everything that a model can read of memory, by the surface."""
    return [
        (place, value if isinstance(value, str) else json.dumps(value, default=str))
        for surface in (briefs, of_hosts, of_tools, of_architects, of_search)
        for place, value in surface(home)
    ]


def leaks(home):
    return [(place, words) for place, text in rendered(home) for words in WORDS.values() if words in text]


@pytest.mark.slow
def test_what_waits_reaches_no_model_and_what_a_person_accepts_does(tmp_path, monkeypatch):
    home = proposing(tmp_path)
    monkeypatch.chdir(tmp_path)
    fill(home, tmp_path)

    waiting = "\n".join(item["content"] for item in review.waiting(home=home))
    assert [words for words in WORDS.values() if words not in waiting] == []
    assert "move the invoices to the new table" not in waiting
    assert leaks(home) == []
    for item in review.waiting(home=home):
        for name, arguments in (
            ("get", {"ids": [item["id"]]}),
            ("timeline", {"id": item["id"]}),
            ("trace", {"id": item["id"]}),
        ):
            with pytest.raises(AetherError) as unknown:
                tool(name, home, **arguments)
            assert item["content"] not in str(unknown.value)

    review.decide([item["id"] for item in review.waiting(home=home)], accept=True, home=home)

    assert {words for _, words in leaks(home)} == {*WORDS.values()}


@pytest.mark.slow
def test_no_file_of_the_home_that_others_read_has_anything_that_waits(tmp_path):
    home = proposing(tmp_path)
    fill(home, tmp_path)

    for path in sorted(home.rglob("*")):
        relative = path.relative_to(home).as_posix()
        # Aether alone reads the document with its journal and backups, and what hooks know of a conversation.
        if path.is_file() and not relative.startswith(("data/", "hooks/sessions/")):
            text = path.read_bytes().decode("utf-8", "replace")
            assert not [words for words in WORDS.values() if words in text], relative


DECISIONS = st.lists(
    st.tuples(st.sampled_from(["accept", "reject", "add", "propose"]), st.integers(0, 5)), max_size=6
)


def test_what_a_tool_and_a_hook_state_is_in_no_brief_and_no_recall(tmp_path):
    home = proposing(tmp_path)
    put(home, entry("Stop", "c-one", message=f"{WORDS['hook']}.", prompt_id="p1"))
    with authors.acting(authors.MCP):
        tools.remember(f"{WORDS['tool']}.", "decision", home=home)

    texts = [*briefs(home), ("recall", recall.recall(QUESTION, home=home))]

    assert len(review.waiting(home=home)) == 2
    assert [place for place, text in texts for words in WORDS.values() if words in str(text)] == []


@given(DECISIONS, st.booleans())
def test_a_decision_that_is_undone_was_never_made(steps, accepts):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home = proposing(Path(directory))
        for nth in range(4):
            aether.add_working_memory_item(
                f"Fact {nth} of the builder.", "decision", home=home, caste="builder"
            )
        for nth, (step, place) in enumerate(steps):
            waiting = review.waiting(home=home)
            if step == "add":
                aether.add_working_memory_item(f"Word {nth} of the person.", "decision", home=home)
            elif step == "propose":
                aether.add_working_memory_item(
                    f"Word {nth} of a scout.", "decision", home=home, source="scout"
                )
            elif waiting:
                review.decide([waiting[place % len(waiting)]["id"]], step == "accept", home=home)
        before = read(home).documents
        ids = [item["id"] for item in review.waiting(home=home)]

        review.decide(ids, accepts, home=home)
        if ids:
            aether.undo(home=home)

        assert read(home).documents == before


@given(st.lists(st.text(min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=5, unique=True))
def test_an_entry_waits_or_counts_and_never_both(texts):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home = proposing(Path(directory))
        for text in texts:
            aether.add_working_memory_item(text, "decision", home=home, caste="scout")
            aether.add_working_memory_item(text, "decision", home=home, caste="scout")
        waiting = review.waiting(home=home)
        assert len({gate.digest_of(item) for item in waiting}) == len(waiting)

        review.decide([item["id"] for item in waiting[::2]], accept=True, home=home)
        review.decide([item["id"] for item in waiting[1::2]], accept=False, home=home)
        for text in texts:
            with suppress(Refused):  # it was rejected
                aether.add_working_memory_item(text, "decision", home=home, caste="scout")

        assert review.waiting(home=home) == []
        assert [item["id"] for item in read(home).documents["memory"]["working_memory"]["items"]] == [
            item["id"] for item in waiting[::2]
        ]
