"""The law of erasing beside others: whatever runs while a text is erased, no file of the home holds it afterwards.

Each operation that writes runs once for each moment at which it opens a file to write or waits for a lock. At that moment
the text is erased: wholly, or by a process that is killed after its decision, or the operation itself is killed.
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import signal
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
import zstandard

import aether
from aether import regular
from aether.api import (
    admin,
    archive,
    briefing,
    chat,
    closing,
    colony,
    conversations,
    drain,
    enforcing,
    goals,
    graph,
    hook_sessions,
    patterns,
    prompt_recall,
    review,
    tokens,
    working,
)
from aether.api import forget as api_forget
from aether.errors import AetherError
from aether.store import files, search_index
from tests import effort, homes
from tests.api.test_erase import conversation, holders, planted
from tests.crash import faults
from tests.hook_player import put, turn

TEXT = "Quorvex-77"
TALK, CONTEXT, OLD = "work", "context", "old"
CHAT = {"id": "another", "messages": [{"role": "user", "content": "hello"}]}
NEW = {"role": "user", "content": "and now?"}
# In the default tier: one that reads before it has a lock, for each kind of lock and of file.
SAMPLE = ("compress context", "context snapshot", "compress", "restore", "brief", "backup")
# So many moments of an operation in the slow tier.
MOST = 24


def used(home):
    """A home that holds the text in every kind of file, with something for each operation to do."""
    planted(home, TEXT)
    admin.repair(home=home)
    with suppress(AetherError):
        admin.accept_edit("COLONY_STATE", home=home)
    aether.open_context(CONTEXT, window=8_192, system=f"Be careful with {TEXT}.", home=home)
    for number in range(12):
        said = {"role": ("user", "assistant")[number % 2], "content": f"{number}. We use {TEXT} here. " * 30}
        aether.add_message(CONTEXT, said, home=home)
    aether.take_snapshot(CONTEXT, home=home)
    given = {"id": OLD, "created_at": "2020-01-01T00:00:00Z", "messages": conversation(TEXT)}
    aether.archive_conversations([given, {**given, "id": "older"}], home=home)
    aether.add_goal(f"Ship {TEXT}.", home=home)
    aether.add_goal("Another.", home=home)
    aether.emit_signal("FOCUS", context=f"see {TEXT}", home=home)
    hook_sessions.record_injected(home, "s9", [f"- {TEXT}"])
    put(home, *turn(7))
    put(
        home,
        {
            "event": "UserPromptSubmit",
            "session": "s3",
            "at": "2026-03-01T10:15:00.000000Z",
            "prompt": f"Never use {TEXT}.",
        },
    )


def _first(home):
    return str(aether.list_working_memory_items(home=home)[0]["id"])


def _answer(home):
    answer = {
        "summary": "It is done.",
        "state": [],
        "next": [],
        "rules": [],
        "open": [],
        "resolved": [],
        "decisions": [],
    }
    return closing.close_session(answer, home=home)


def _settle(home):
    doubts = review.review(home=home)
    return review.settle(doubts[0].id, "keep", home=home) if doubts else None


def _say(home):
    said = chat.open_chat(CONTEXT, backend="echo", home=home)
    return chat.say(said, "hello", on_text=lambda _: None)


def _import(home):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=home.parent) as file:
        file.write(json.dumps({"role": "user", "content": "Never deploy on Friday."}) + "\n")
        file.flush()
        return aether.import_transcripts([file.name], home=home)


OPERATIONS = {
    "add": lambda home: aether.add_working_memory_item("new", "observation", home=home),
    "add several": lambda home: aether.add_working_memory_items([{"content": "new", "type": "observation"}], home=home),
    "update": lambda home: aether.update_working_memory_item(_first(home), {"relevance_score": 0.5}, home=home),
    "clear": lambda home: aether.clear_working_memory(home=home),
    "compress if needed": lambda home: aether.auto_compress_if_needed(home=home),
    "signal": lambda home: aether.emit_signal("FOCUS", "speed", home=home),
    "complete phase": lambda home: aether.complete_phase(4, home=home),
    "adapt phase": lambda home: aether.adapt_next_phase_from_memory(5, home=home),
    "await decision": lambda home: aether.await_queen_decision(4, home=home),
    "decide": lambda home: colony.decide("continue", home=home),
    "register worker": lambda home: aether.register_worker("w1", home=home),
    "recover": lambda home: aether.recover_from_crash(home=home),
    "transition": lambda home: aether.transition_state("VERIFYING", home=home),
    "goal": lambda home: aether.add_goal("Third.", home=home),
    "finish goal": lambda home: aether.finish_goal(home=home),
    "checkpoint goal": lambda home: aether.checkpoint_goal("half", home=home),
    "markers": lambda home: goals.apply_markers("[CHECKPOINT] half - COMPLETED", home=home),
    "messages": lambda home: conversations.add_messages(TALK, [NEW], home=home),
    "pop": lambda home: conversations.pop_message(TALK, home=home),
    "clear context": lambda home: conversations.clear_context(TALK, home=home),
    "message": lambda home: aether.add_message(CONTEXT, NEW, home=home),
    "mode": lambda home: aether.set_mode(CONTEXT, "developer", home=home),
    "model": lambda home: aether.set_model(CONTEXT, "m", window=4_096, home=home),
    "prompt": lambda home: aether.build_prompt(CONTEXT, home=home),
    "compress context": lambda home: aether.compress_context(CONTEXT, home=home),
    "emergency": lambda home: aether.emergency(CONTEXT, most=600, home=home),
    "overflow": lambda home: aether.handle_overflow(CONTEXT, "prompt is too long: 9000 tokens > 2048 maximum", home=home),
    "context snapshot": lambda home: aether.take_snapshot(CONTEXT, home=home),
    "restore context": lambda home: aether.restore_context(CONTEXT, home=home),
    "compact": lambda home: aether.compact("third", [NEW] * 2 + [{"role": "user", "content": "and so on. " * 900}], window=2_000, home=home),
    "undo compaction": lambda home: aether.undo_compaction(TALK, home=home),
    "chat": _say,
    "snapshot": lambda home: aether.create_snapshot("second", home=home),
    "automatic snapshot": lambda home: admin.automatic_snapshot("by itself", home=home),
    "restore": lambda home: aether.restore_snapshot(home=home),
    "fold": lambda home: aether.fold(home=home),
    "undo": lambda home: aether.undo(home=home),
    "doctor": lambda home: aether.repair(home=home),
    "forget": lambda home: aether.forget(match="innocent", home=home),
    "forget entries": lambda home: aether.forget([_first(home)], home=home),
    "supersede": lambda home: aether.supersede_memory(_first(home), "It is new.", home=home),
    "resolve": lambda home: aether.resolve_memory(_first(home), home=home),
    "settle": _settle,
    "note": lambda home: aether.memory_tool({"command": "create", "path": "/memories/b.md", "file_text": "two"}, home=home),
    "clear notes": lambda home: aether.clear_memory_files(home=home),
    "prepare": lambda home: aether.prepare_compression_data(5, manual=True, new=True, home=home),
    "compress": lambda home: aether.compress(5, architect="extractive", home=home),
    "close session": _answer,
    "evict": lambda home: aether.evict_short_term_session(home=home),
    "patterns": lambda home: aether.trigger_pattern_extraction(home=home),
    "detect patterns": lambda home: aether.detect_patterns_across_sessions(home=home),
    "promote": lambda home: patterns.promote_item(_first(home), home=home),
    "entities": lambda home: graph.create_entities([{"name": "n", "entityType": "t", "observations": ["o"]}], home=home),
    "delete entities": lambda home: graph.delete_entities(["n"], home=home),
    "archive": lambda home: aether.archive_conversations([CHAT], home=home),
    "age": lambda home: aether.age_archive(now=homes.later(86_400 * 9_000), home=home),
    "restore conversation": lambda home: aether.restore_conversation(OLD, home=home),
    "delete archived": lambda home: archive.delete_archived(OLD, home=home),
    "mark": lambda home: aether.mark_conversation_important(OLD, home=home),
    "policy": lambda home: aether.update_retention_policy({"recent_days": 3}, home=home),
    "search archive": lambda home: aether.search_archive("password", home=home),
    "search": lambda home: aether.search_memory("Always use", home=home),
    "recall": lambda home: aether.recall("Always use", home=home),
    "count": lambda home: tokens.use_counter("estimate", 1.1, home=home),
    "usage": lambda home: aether.record_usage("m", 100, 110, home=home),
    "rule": lambda home: aether.enforce_rule(enforcing.rule_proposals(home=home)[0].id, home=home) if enforcing.rule_proposals(home=home) else None,
    "import": _import,
    "drain": drain.drain,
    "claim": lambda home: aether.claim("a file", by="w1", home=home),
    "hand over": lambda home: aether.hand_over(to="w2", items=[_first(home)], home=home),
    "step": lambda home: aether.set_step("first", "active", home=home),
    "block goal": lambda home: aether.block_goal("no server", home=home),
    "decide goal": lambda home: aether.decide_goal("Use one file.", home=home),
    "artifact": lambda home: aether.record_artifact("a.py", "created", home=home),
    "pattern": lambda home: aether.extract_pattern_to_long_term("Use one file.", session_id="phase_1_x", home=home),
    "open context": lambda home: aether.open_context("fourth", window=8_192, home=home),
    "export and import": lambda home: admin.import_export({**admin.export(home=home), "documents": {}}, home=home),
    "brief": lambda home: briefing.session_brief(home, "startup", "s9"),
    "prompt recall": lambda home: prompt_recall.prompt_recall("Should we always use the cache here?", budget=500, home=home, session="s9"),
    "handoff": working.prepare_handoff,
    "backup": lambda home: aether.create_backup(str(home.parent / "backup"), home=home),
}  # fmt: skip


# Operations that give a conversation the erased text as its name.
NAMED = {
    "start": lambda home: conversations.add_messages(f"a {TEXT}", [NEW], home=home),
    "bring back": lambda home: aether.restore_snapshot(home=home),
}


# Public functions that write nothing of what they read, and those that write as one of the operations does, or elsewhere.
OTHERS = """
accept_edit acompact active_signals answered apreflight archive_files archive_stats calls_stopped_by check_token_threshold
checkpoints claims compaction_diff compaction_plan context_list context_status conversation_list create_associative_link
create_short_term_session current_goal detect_crash enforced_rules examine explain_retention export_history file_history
get_compression_stats get_memory_status get_working_memory_item goal inbox init leave_share list_archived
list_snapshots log next_step pause_goal preflight read_archived recall_tool relax_rule release
release_worker report restore_backup retention_recommendations roster share share_grant share_members share_remove
share_revoke share_status show snapshots start_goal start_phase stream_overflow timeline trace
trigger_phase_boundary_compression unblock_goal undo_source update_share validate_context verify_archive verify_token_limit
""".split()


def test_each_public_function_is_tried_or_named():
    tried = {
        name for act in OPERATIONS.values() for name in getattr(act, "__code__", _import.__code__).co_names
    }
    tried |= {*_import.__code__.co_names, *_first.__code__.co_names}
    public = {
        name
        for name in dir(aether)
        if inspect.isfunction(getattr(aether, name))
        and "home" in inspect.signature(getattr(aether, name)).parameters
    }

    assert public - tried - {*OTHERS} == set()
    assert {*OTHERS} - public == set()


class Moments:
    """The moments at which an operation waits for a lock or opens a file to write; at the one to strike, `act` is called.

    With `fatal` the process is killed at the next moment after that.
    """

    def __init__(self, strike=-1, act=None, *, fatal=False):
        self.count, self.strike, self.act, self.fatal = 0, strike, act, fatal
        self.thread, self.locks = threading.get_ident(), set()

    def wrap(self, real, *, is_lock=False, when=lambda *args: True):
        def call(*args, **named):
            if threading.get_ident() != self.thread or not when(*args):
                return real(*args, **named)
            if self.fatal and self.count > self.strike:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.count == self.strike:
                self.act(is_locked=bool(self.locks))
            self.count += 1
            result = real(*args, **named)
            if is_lock and result is not None:
                self.locks.add(result)
            return result

        return call

    def closing(self, real):
        def close(handle):
            if threading.get_ident() == self.thread:
                self.locks.discard(handle)
            return real(handle)

        return close


@contextmanager
def watched(moments, *, compared=False):
    """Count the moments of the block; if `compared`, also those before the mark of erasures is compared."""

    def appends(path, flags=os.O_RDONLY, **_):
        return bool(flags & os.O_APPEND)

    with pytest.MonkeyPatch.context() as patch:
        if compared:
            patch.setattr(files, "require_not_overtaken", moments.wrap(files.require_not_overtaken))
        patch.setattr(files, "_acquire", moments.wrap(files._acquire, is_lock=True))
        patch.setattr(files, "close", moments.closing(files.close))
        patch.setattr(files, "_temp_of", moments.wrap(files._temp_of))
        patch.setattr(regular, "handle", moments.wrap(regular.handle, when=appends))
        patch.setattr(search_index, "connected", moments.wrap(search_index.connected))
        yield moments


def operate(home, name, moments):
    """Run an operation, which may fail because of what became of the home."""
    homes.reopened(home)
    with watched(moments, compared=name in NAMED), suppress(AetherError):
        (OPERATIONS | NAMED)[name](home)


def erase(home):
    return api_forget.erase(match=TEXT, home=home)


class Killed(BaseException):
    """The end of a process, as far as files see it."""


def erase_killed(home):
    """Erase by a process that is killed when it has decided."""

    def finish(*_, **__):
        raise Killed

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(api_forget, "finish", finish)
        erase(home)


class Beside(threading.Thread):
    """Another process of the home, which waits where the operation has a lock that it needs."""

    def __init__(self, act, home):
        super().__init__()
        self.work, self.home, self.failure = act, home, None

    def run(self):
        try:
            self.work(self.home)
        except BaseException as reason:
            self.failure = reason

    def strike(self, *, is_locked):
        self.start()
        self.join(0.05 if is_locked else None)


def ran_beside(home, name, moment, eraser):
    """Run an operation, with an erasing at one of its moments; return whether that began before its end."""
    beside, before = Beside(eraser, home), files.erasure_mark(home)
    operate(home, name, Moments(moment, beside.strike))
    is_overtaken = files.erasure_mark(home) != before
    if beside.ident is not None:
        beside.join()
    assert beside.failure is None, beside.failure
    return is_overtaken


def killed_beside(home, name, moment):
    """Run an operation that is killed at the moment after an erasing; return whether there was one."""

    def strike(*, is_locked):
        if is_locked:  # the erasing would be killed, too
            os._exit(0)
        beside = Beside(erase, home)
        beside.strike(is_locked=False)
        assert beside.failure is None, beside.failure

    def child():
        operate(home, name, Moments(moment, strike, fatal=True))

    before = files.erasure_mark(home)
    assert faults.in_child(child) in (0, -signal.SIGKILL)
    return files.erasure_mark(home) != before


def backed_up(place):
    """Return the objects of a place of backups that hold the text."""
    objects = [path for path in place.rglob("*") if path.is_file() and len(path.name) == 64]
    return [path.name for path in objects if TEXT.encode() in zstandard.decompress(path.read_bytes())]


@pytest.fixture(scope="module")
def original():
    """Return a home that no test changes, in memory where the machine has such a place."""
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory, pytest.MonkeyPatch.context() as patch:
        for module, name in ((os, "fsync"), (os, "fdatasync"), (files, "sync_data")):
            patch.setattr(module, name, lambda handle: None)
        home = Path(directory) / ".aether"
        used(home)
        yield home


HOW = ("erased", "killed", "kills")
ROWS = [
    *((name, False) for name in SAMPLE),
    *(pytest.param(name, True, marks=pytest.mark.slow, id=f"{name}-every moment") for name in OPERATIONS),
]


def chosen(count, *, every):
    """Return the moments to strike, each with what happens: all, or as many as others take."""
    if not every:
        return [(moment, HOW[moment % 2]) for moment in range(0, count, 3)]
    cases = [(moment, how) for moment in range(count) for how in HOW]
    return cases if effort.FULL_TRIALS or len(cases) < MOST else Random(count).sample(cases, MOST)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(("name", "every"), ROWS)
def test_nothing_that_was_read_before_an_erasing_is_in_a_file_after_it(name, every, original, copies):
    counted = Moments()
    operate(copies(original), name, counted)
    cases = chosen(counted.count, every=every)
    for moment, how in cases:
        home, where = copies(original), f"{name}: {how} at moment {moment} of {counted.count}"
        if how == "kills":
            is_overtaken = killed_beside(home, name, moment)
        else:
            is_overtaken = ran_beside(home, name, moment, erase if how == "erased" else erase_killed)
        if how != "kills" or is_overtaken:
            homes.add(home, "later", "the next writer finishes the erasing of a killed process")
            assert holders(home, TEXT) == [], where
        if is_overtaken and how != "kills":  # a backup that was whole before is a copy outside the home
            assert backed_up(home.parent / "backup") == [], where
    print(f"moments: {len(cases)} of {counted.count * len(HOW)}, in none of them the text was left")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("name", NAMED)
def test_a_conversation_that_starts_while_its_name_is_erased_is_not_missed_afterwards(name, home, copies):
    conversations.add_messages(f"b {TEXT}", [NEW], home=home)
    aether.create_snapshot(home=home)
    conversations.delete_conversation(f"b {TEXT}", home=home)
    counted = Moments()
    operate(copies(home), name, counted)
    for moment, how in itertools.product(range(counted.count), HOW):
        copy, where = copies(home), f"{name}: {how} at moment {moment} of {counted.count}"
        if how == "kills":
            killed_beside(copy, name, moment)
        else:
            ran_beside(copy, name, moment, erase if how == "erased" else erase_killed)
        homes.add(copy, "later", "the next writer finishes the erasing of a killed process")
        erase(copy)  # what was passed is new text
        missed = [finding for finding in admin.examine(home=copy) if finding.code == "missing-conversation"]
        assert missed == [], where
        assert holders(copy, TEXT) == [], where
