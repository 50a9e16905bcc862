"""The active branch: all of it is read, and nothing of a branch that the person went back from."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from aether.messages.branches import taken_back
from aether.messages.sources import chat, claude_code, codex
from aether.messages.transcripts import load_conversation
from tests.tables import rows


class Session:
    """A transcript of Claude Code as it is written: what is on the active branch is known by its texts."""

    def __init__(self, *, named):
        self.lines, self.named = [], named
        self.active = []
        """Of the active branch, what each line says, with the place of its line."""
        self.prompts = []
        """Of each prompt on the active branch: the leaf before it, and how much was active."""
        self.leaf = None

    def write(self, kind, words, parent, *, says="", **more):
        uuid = f"u{len(self.lines)}"
        message = {"message": {"role": kind, "content": words}} if kind in ("user", "assistant") else {}
        message.get("message", {}).update(more.pop("about", {}))
        self.lines.append(
            {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", **message, **more}
        )
        if says:
            self.active.append(says)
        return uuid

    def prompt(self, back, noted=False):
        if back and self.prompts:
            self.leaf, kept = self.prompts[-min(back, len(self.prompts))]
            del self.prompts[-min(back, len(self.prompts)) :]
            del self.active[kept:]
        self.prompts.append((self.leaf, len(self.active)))
        if noted and self.leaf:  # a note without a line before it may open a resumed session
            text = f"note {len(self.lines)}"
            self.leaf = self.write("user", text, self.leaf, says=text, isMeta=True)
        text = f"prompt {len(self.lines)}"
        self.leaf = self.write("user", text, self.leaf, says=text)

    def respond(self, calls, shape, order):
        about = {"id": f"m{len(self.lines)}"} if self.named else {}
        opening, made = self.leaf, []
        for nth in range(calls):
            name = f"call {len(self.lines)}"
            block = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}}
            parent = opening if shape == "beside" else self.leaf
            self.leaf = self.write("assistant", [block], parent, says=name, about=about)
            made.append((name, self.leaf))
            if shape == "mixed" and nth == 0:
                self.answer(*made.pop())
        for name, line in sorted(made, key=lambda call: hash((call[0], order))):
            self.answer(name, line)
        if not calls:
            text = f"answer {len(self.lines)}"
            self.leaf = self.write(
                "assistant", [{"type": "text", "text": text}], self.leaf, says=text, about=about
            )

    def answer(self, name, line):
        text = f"result of {name}"
        block = {"type": "tool_result", "tool_use_id": name, "content": text}
        leaf = self.write("user", [block], line, says=text)
        self.write("attachment", None, leaf, attachment={"type": "hook_success"})
        self.leaf = leaf

    def agent(self):
        text = f"agent {len(self.lines)}"
        self.write("assistant", text, "elsewhere", says=text, isSidechain=True)

    def compact(self):
        text = f"boundary {len(self.lines)}"
        self.leaf = self.write(
            "system", None, None, says=text, subtype="compact_boundary", content=text, logicalParentUuid=self.leaf
        )  # fmt: skip
        text = f"summary {len(self.lines)}"
        self.leaf = self.write("user", text, self.leaf, says=text, isCompactSummary=True)


STEPS = st.one_of(
    st.tuples(st.just("prompt"), st.integers(0, 3), st.booleans()),
    st.tuples(
        st.just("respond"), st.integers(0, 3), st.sampled_from(["chain", "beside", "mixed"]), st.integers()
    ),
    st.just(("agent",)),
    st.just(("compact",)),
)


@st.composite
def sessions(draw):
    session = Session(named=draw(st.booleans()))
    session.prompt(0)
    for name, *about in draw(st.lists(STEPS, max_size=25)):
        getattr(session, name)(*about)
    session.prompt(draw(st.integers(0, 2)))
    session.respond(0, "chain", 0)
    return session


def said(lines):
    found = claude_code.records(enumerate(lines, start=1))
    return [one.arguments["command"] if one.kind == "call" else one.text for one in found]


@given(sessions())
def test_the_active_branch_is_read_whole_and_nothing_else(session):
    assert said(session.lines) == session.active


def texts(lines):
    """Return what all lines say, whatever their branch."""
    return [text for each in lines for text in said([{**each, "parentUuid": "gone"}])]


@given(sessions(), st.data())
def test_a_slice_stays_readable(session, data):
    part = session.lines[data.draw(st.integers(0, len(session.lines) - 1)) :]

    assert said(part)[-1] == session.active[-1]
    assert [text for text in said(part) if text in session.active] == [
        text for text in texts(part) if text in session.active
    ]


@given(sessions())
def test_compaction_reads_the_same_branch(session):
    source = "".join(f"{json.dumps(line)}\n" for line in session.lines).encode()
    text = json.dumps([message.raw for message in load_conversation(io.BytesIO(source)).messages])

    assert not [
        words for words in texts(session.lines) if words not in session.active and json.dumps(words) in text
    ]
    assert all(
        json.dumps(words) in text for words in session.active if words.startswith(("prompt", "result"))
    )


def line(uuid, parent, text, kind="user", **more):
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "message": {"role": kind, "content": text},
        **more,
    }


def test_a_rewind_to_before_the_first_prompt_starts_again():
    first = [line("1", None, "Use MongoDB."), line("2", "1", "Done.", "assistant")]

    assert said([*first, line("3", None, "Use PostgreSQL."), line("4", "3", "Done.", "assistant")]) == [
        "Use PostgreSQL.", "Done.",
    ]  # fmt: skip
    assert said([*first, line("3", "gone", "Go on.")]) == ["Use MongoDB.", "Done.", "Go on."]
    assert said([*first, line("3", None, "Another.", sessionId="t")]) == ["Use MongoDB.", "Done.", "Another."]


def test_lines_of_which_none_names_the_one_before_are_one_branch():
    assert said([line("1", None, "A."), line("2", None, "B."), {**line("3", None, "C."), "parentUuid": "3"}]) == [
        "A.", "B.", "C.",
    ]  # fmt: skip


def test_what_was_queued_in_a_withdrawn_branch_is_withdrawn():
    def queued(operation, **more):
        return {"type": "queue-operation", "operation": operation, "timestamp": "t", "sessionId": "s", **more}

    lines = [
        line("1", None, "Start."), line("2", "1", "Well?", "assistant"), line("3", "2", "Old."),
        queued("enqueue", content="Also old."), queued("remove"), line("4", "2", "New."),
        queued("enqueue", content="Also new."), queued("remove"),
    ]  # fmt: skip
    assert said(lines) == ["Start.", "Well?", "New.", "Also new."]


def codex_line(kind, payload):
    return {"timestamp": "2026-10-02T09:00:00Z", "type": kind, "payload": payload}


def codex_said(role, text):
    return codex_line(
        "response_item", {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    )


@rows(
    "event",
    [
        {"type": "thread_rolled_back", "num_turns": 1},
        {"type": "thread_rolled_back"},
        {"type": "rollback", "turns": 1},
    ],
)
def test_turns_that_codex_rolled_back_are_not_read(event):
    lines = [
        codex_line("session_meta", {"id": "c"}), codex_said("user", "Use Go."), codex_said("assistant", "Done."),
        codex_said("user", "<environment_context>\nx\n</environment_context>"), codex_said("user", "Use Rust."),
        codex_said("assistant", "Rust it is."), codex_line("event_msg", event), codex_said("user", "Use Zig."),
    ]  # fmt: skip
    found = [one.text for one in codex.records(enumerate(lines)) if one.kind != "system"]

    assert found == ["Use Go.", "Done.", "Use Zig."]
    source = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    assert "Rust" not in str([message.raw for message in load_conversation(io.BytesIO(source)).messages])


@given(st.lists(st.one_of(st.just("turn"), st.just("answer"), st.integers(1, 4)), max_size=30))
def test_a_rollback_takes_back_the_last_turns(steps):
    marks, active = [], []
    for at, step in enumerate(steps):
        marks.append(("turns", step) if isinstance(step, int) else ("turn" if step == "turn" else "", ""))
        turns = [nth for nth, (_, kind) in enumerate(active) if kind == "turn"]
        if isinstance(step, int):
            del active[turns[-min(step, len(turns))] if turns else len(active) :]
        active.append((at, step))
    assert [at for at in range(len(steps)) if at not in taken_back(marks)] == [at for at, _ in active]


def gemini(kind, name, text, **more):
    return {"id": name, "timestamp": "2026-10-02T10:00:00Z", "type": kind, "content": text, **more}


def test_what_gemini_rewound_is_not_read_and_what_it_wrote_again_is_read_once():
    lines = [
        {"sessionId": "g", "projectHash": "h", "startTime": "t", "kind": "main"},
        gemini("user", "1", "Use Go."), gemini("gemini", "2", "Wor"), gemini("gemini", "2", "Works."),
        gemini("user", "3", "Use Rust."), gemini("gemini", "4", "Done."), {"$rewindTo": "3"},
        {"$set": {"lastUpdated": "t"}}, gemini("user", "5", [{"text": "Use Zig."}]),
    ]  # fmt: skip
    bad = []
    found = list(chat.records(enumerate(lines), on_bad=bad.append))

    assert [one.text for one in found] == ["Use Go.", "Works.", "Use Zig."]
    assert {one.session for one in found} == {"g"}
    assert not bad


def test_a_branch_that_pi_left_is_not_read():
    def entry(name, parent, role, text):
        return {"type": "message", "id": name, "parentId": parent, "message": {"role": role, "content": text}}

    lines = [
        {"type": "session", "id": "s"}, entry("1", None, "user", "Start."), entry("2", "1", "assistant", "Well?"),
        entry("3", "2", "user", "Old."), entry("4", "3", "assistant", "Old it is."), entry("5", "2", "user", "New."),
    ]  # fmt: skip
    assert [one.text for one in chat.records(enumerate(lines))] == ["Start.", "Well?", "New."]
