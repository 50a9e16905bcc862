"""The hook process: one event of a host on standard input, kept in the spool and answered.

It never breaks, slows or floods its host: it exits with 0, within its deadline, and a failure is one line of
`hook.log`. The event is in the spool, durably, before anything that may fail is tried. An event of a tool ends there
and imports next to nothing. Code that holds the interpreter is ended from outside, with 1 and without a line.

The host's module translates its payload (`aether.hosts.HOSTS`); here the event becomes an entry: texts are cut and
redacted, with more around a cut than is kept, so that no secret is torn into two harmless halves, and everything
about private paths is left out. The text for the model is made in `answer`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from aether import regular
from aether.errors import AetherError, StorageFailed
from aether.hosts import DEFAULT_HOST, HOSTS
from aether.project import home_of, homes_above, may_create_home, user_file
from aether.redact.redact import is_private, redact, redacted, without_blocks
from aether.store import spool

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from aether.store.keys import Config
    from aether.types import JsonObject

    Deadline = Callable[[float, str, str, str], None]
    Settings = Config | type["Defaults"]


class Kind(NamedTuple):
    """What is done with a kind of event."""

    seconds: float = 4.0
    """Until the event must be in the spool: a little less than the host waits. Only then `claude.deadline_seconds` count."""
    answers: bool = False
    """Whether memory is read, and perhaps changed, after the event was kept."""
    makes_home: bool = False
    is_placed: bool = False
    """Whether its directory is kept: the other events of the turn are of the same project, and wait for no pattern."""
    has_speech: bool = False
    """Whether it ends a turn, or its part before a compaction: the transcript holds more than the payload."""
    of_tools: bool = False
    is_kept: bool = True
    """Whether it becomes an entry of the spool; one that waits for permission has not happened yet."""
    patience: int = 1
    """Factor of `claude.deadline_seconds`: a full home takes several seconds around a compaction, and a person waits anyway."""


# The events of aether, by the names that Claude Code has for them; other hosts translate theirs.
EVENTS = {
    "SessionStart": Kind(12.0, answers=True, makes_home=True, is_placed=True),
    "UserPromptSubmit": Kind(12.0, answers=True, makes_home=True, is_placed=True),
    "PreToolUse": Kind(of_tools=True, is_kept=False),
    "PostToolUse": Kind(of_tools=True),
    "PostToolUseFailure": Kind(of_tools=True),
    "SubagentStart": Kind(12.0, answers=True),
    "SubagentStop": Kind(12.0, answers=True, has_speech=True),
    "TaskCompleted": Kind(),
    "PreCompact": Kind(27.0, answers=True, is_placed=True, has_speech=True, patience=3),
    "PostCompact": Kind(27.0, answers=True, patience=3),
    "Stop": Kind(12.0, answers=True, is_placed=True, has_speech=True),
    "SessionEnd": Kind(1.8),
}
UNKNOWN = Kind()
# Whatever a configuration says: the host waits no longer, and the configuration may come with a repository.
MOST_SECONDS = 30.0
# For an event whose storing took very long: it is still answered if the answer is quick.
LEAST_SECONDS = 0.1
# The second clock ends code that holds the interpreter, after the first had its chance.
GRACE_SECONDS = 1.0
# As in aether.api.asks.
ASKS = os.path.join("hooks", "asks")
# Set for the model that aether starts itself: what that does is no session.
OFF = "AETHER_NO_HOOKS"
# No meaningful number has as many.
MOST_DIGITS = 100
# Characters of the start and of the end. A longer request or answer is a pasted document, with its rules at either end.
TEXT_CHARS = (15_000, 5_000)
SUMMARY_CHARS = (40_000, 20_000)
_LIMITS = {
    "prompt": TEXT_CHARS, "message": TEXT_CHARS, "subject": TEXT_CHARS, "description": TEXT_CHARS,
    "task_text": TEXT_CHARS, "summary": SUMMARY_CHARS,
}  # fmt: skip
# One text of the assistant between two calls, and all of them together: the last of them, if there are more.
INTERIM_CHARS = (4_000, 1_000)
ALL_INTERIM_CHARS = 200_000
# The most that aether.messages.shell reads of an output, and aether.messages.tool_calls of a new text.
OUTPUT_CHARS = (4_200, 4_200)
INPUT_CHARS = 20_000
# All texts of one input together, and how far the input is read: it is a tool's arguments, not a document.
ALL_INPUT_CHARS = 100_000
MOST_ENTRIES = 200
MOST_DEPTH = 8
NAME_CHARS = 200
PATH_CHARS = 4_096
# Characters that are redacted around a cut: as many as the longest private key has.
SLACK_CHARS = 1 << 14
_HEX = frozenset("0123456789abcdef")
USAGE = """aether-hook reads one event of Claude Code on its standard input. To see what it says:
  echo '{"hook_event_name": "SessionStart", "source": "startup"}' | aether-hook
To have Claude Code call it: aether claude install
"""
# One file for the life of the process: a C thread writes the traceback, which nobody reads.
_DEVNULL: list[int] = []


class Defaults:
    """The settings where none of hooks is set: as in aether.store.keys, which takes too long to import."""

    claude_capture = claude_inject = claude_recall = claude_auto_compress = True
    claude_private_paths = ".env, .env.*, *.pem, *.key, id_rsa*, id_ed25519*, .ssh/**, .aws/**"
    claude_deadline_seconds, claude_file_history = 8.0, False
    architect = "extractive"


def run() -> NoReturn:
    """Answer the event on standard input as a process of its own, and end it."""
    import gc

    gc.disable()  # the process is over before there is garbage
    os._exit(serve(sys.argv[1:]))  # the interpreter's own end takes as long as the event


def serve(arguments: list[str]) -> int:
    """Answer the event on standard input under the deadline, print the text for the model, return the exit code."""
    wants_help = not {"--help", "-h"}.isdisjoint(arguments)
    if wants_help or sys.stdin is None or sys.stdin.isatty():
        stream = sys.stdout if wants_help else sys.stderr
        if stream is not None:
            stream.write(USAGE)
            stream.flush()
        return 0 if wants_help else 1
    set_deadline(MOST_SECONDS, "", arguments[0] if arguments else "", "")  # while the host still writes
    code, text = main(arguments, sys.stdin.buffer.read(), deadline=set_deadline)
    set_deadline(0, "", "", "")
    if sys.stdout is None:
        return code  # it was closed before the process started
    try:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    except OSError:
        return 0  # nobody reads it
    return code


def main(argv: list[str], stdin: bytes, *, deadline: Deadline = lambda *_: None) -> tuple[int, str]:
    """Return the exit code for the event in `stdin`, and the text to print; never raise.

    `argv` may name the host, and the event if the payload does not. `deadline` is called with the seconds that the next
    step may take, and with home, event and session.

    >>> main(["PostToolUse"], b'{"cwd": "/nowhere"}')
    (0, '')
    """
    host_name = argv[0] if argv and argv[0] in HOSTS else DEFAULT_HOST
    host = import_module(HOSTS[host_name])
    name, session, home = next((word for word in argv if word not in HOSTS), ""), "", ""
    try:
        home = home_of(os.getcwd(), os.environ.get(host.PROJECT_VARIABLE, ""))
        deadline(EVENTS.get(name, UNKNOWN).seconds, home, name, session)
        payload = _parse(stdin)
        event = host.event_of(payload, name)
        if host_name != DEFAULT_HOST:
            event["host"] = host_name
        name, session, cwd = event["event"], event["session"], event["directory"]
        cwd = cwd if cwd and "\0" not in cwd else os.getcwd()
        home = home_of(cwd, os.environ.get(host.PROJECT_VARIABLE, ""))
        if name == "PreToolUse":
            return 0, _gate(host, event, home)
        _note_handed(home, event)
        if EVENTS.get(name, UNKNOWN).of_tools and _is_kept_as_note(event, home):
            return 0, ""
        return 0, _answer(host, event, payload, home, deadline)
    except Exception as reason:  # noqa: BLE001 - a failure here must not fail the host
        logged = spool.log_failure(home, name, session, f"{type(reason).__name__}: {reason}")
        is_shown = not logged and EVENTS.get(name, UNKNOWN).makes_home
        return 0, _not_stored(host, home, reason) if is_shown else ""


def _answer(host: Any, event: JsonObject, payload: JsonObject, home: str, deadline: Deadline) -> str:
    """Keep `event` and return the output for it."""
    name, session, started = event["event"], event["session"], time.monotonic()
    kind = EVENTS.get(name, UNKNOWN)
    deadline(kind.seconds, home, name, session)
    is_ready = os.path.isdir(os.path.join(home, "data"))
    if _is_off(home) or not (is_ready or (kind.makes_home and _make_place(home))):
        return ""
    settings, private, problem = _settings(home, name, session)
    if problem:
        spool.log_failure_once(home, name, session, problem)
    if private is None and kind.of_tools:
        return ""  # it may name a private path
    if "read" in event:
        return (
            _about_file(host, event, payload, home, private)
            if settings.claude_file_history and is_ready
            else ""
        )
    if kind.has_speech and settings.claude_capture:
        event = event | host.speech_of(payload, name)
    entry = entry_of(event, private=private or "")
    failure = _keep(home, entry) if entry is not None and settings.claude_capture else None
    if failure and not (is_ready and kind.answers and host.takes_text(name)):
        raise failure
    if name == "SessionEnd" and is_ready:
        from aether.hosts.answer import start_architect, start_late

        start_late(home, name, session, *["brief"] * settings.claude_inject)
        start_architect(home, settings, [session])
    if entry is None or not kind.answers:
        return ""
    seconds = min(settings.claude_deadline_seconds * kind.patience, MOST_SECONDS)
    seconds = max(LEAST_SECONDS, min(seconds, started + max(seconds, kind.seconds) - time.monotonic()))
    deadline(seconds, home, name, session)
    text = _reply(host, entry, payload, home, settings, is_ready=is_ready)
    if failure is None or spool.log_failure(home, name, session, str(failure)) or not kind.makes_home:
        return text
    return _with_warning(text, _not_stored(host, home, failure, "What memory holds is still read."))


def _with_warning(text: str, warning: str) -> str:
    """Return the output `text` with what `warning` shows the user."""
    return (
        json.dumps({**json.loads(text or "{}"), **json.loads(warning)}, ensure_ascii=False)
        if warning
        else text
    )


def _published(home: str, host: Any) -> str:
    """Return the output by which the user learns, once for a home, that a commit publishes what is noted; empty without need."""
    mark = os.path.join(home, "hooks", "published")
    if os.path.lexists(mark) or not spool.holds_tracked(home):
        return ""
    from aether.store.origin import PUBLISHED  # hardly any home is tracked

    regular.create(mark, b"")
    message: str = host.message(f"aether: {PUBLISHED}")
    return message


def _is_off(home: str) -> bool:
    """Return whether hooks do nothing in `home`."""
    return not home or bool(os.environ.get(OFF)) or spool.is_paused(home)


def _is_kept_as_note(event: JsonObject, home: str) -> bool:
    """Return whether a call wrote a note of native memory, which is then committed at once and is no other event."""
    path = (event.get("call") or {}).get("input", {}).get("file_path")
    if not isinstance(path, str) or "memories" not in path or _is_off(home):
        return False
    from aether.hosts.claude_code import native_memory

    if not native_memory.is_note(home, event["call"]):
        return False
    from aether.hosts.answer import keep_notes

    name, session = event["event"], event["session"]
    keep_notes(home, name, session, lambda words: spool.log_failure(home, name, session, words))
    return True


def _note_handed(home: str, event: JsonObject) -> None:
    """Note the words that a person hands over to a command, so that the agent which stores them need not wait."""
    if event["event"] == "UserPromptSubmit" and str(event.get("prompt") or "").startswith("/"):
        from aether.store import handed

        handed.note(home, event["prompt"])


def _gate(host: Any, event: JsonObject, home: str) -> str:
    """Return the output that stops a call by a rule of the person; empty for any other call."""
    call, directory = event.get("call"), event["directory"] or os.getcwd()
    if not call:
        return ""
    from aether.store import enforced

    places = [place for place in dict.fromkeys([home, *homes_above(directory)]) if not _is_off(place)]
    owners = {rule["id"]: (place, rule) for place in places for rule in enforced.read(place)}
    if not owners:
        return ""
    from aether.memory.enforcement import decide, reason

    rules = [rule for _, rule in owners.values()]
    decision = decide(rules, call["tool"], call["input"], directory, cache(_git_aliases))
    if not decision:
        return ""
    place, rule = owners[decision.rule["id"]]
    enforced.note_stop(place, rule["id"], decision.action, call["tool"], event["session"])
    output: str = host.stop(decision.action, printable(reason(decision)))
    return output


def _git_aliases(directory: str) -> dict[str, str]:
    from aether import git  # hardly any call has a verb that may be one

    return git.aliases(directory)


def _make_place(home: str) -> bool:
    """Return whether a home may be created; if so, its directory exists and git ignores it."""
    above = os.path.dirname(home)
    if not may_create_home(above) or not os.path.isdir(above):
        return False
    os.makedirs(home, mode=0o700, exist_ok=True)
    regular.create(os.path.join(home, ".gitignore"), b"*\n")
    return True


def _keep(home: str, entry: JsonObject) -> StorageFailed | None:
    """Put `entry` into the spool; return why it is not there."""
    now = time.time_ns()
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
    entry["at"] = f"{second}.{now // 1000 % 10**6:06d}Z"
    try:
        spool.put(home, entry)
    except StorageFailed as reason:
        return reason
    return None


def _reply(
    host: Any, entry: JsonObject, payload: JsonObject, home: str, settings: Settings, *, is_ready: bool
) -> str:
    """Return the output for an event that was kept; a home that is not ready is created first."""
    from aether.hosts.answer import answer, is_first

    name, session = entry["event"], entry["session"]
    if not is_ready:
        from pathlib import Path

        from aether.api.admin import init

        init(Path(home))
    if not is_first(home, payload, os.environ.get(host.PROCESS_VARIABLE, "")):
        return ""
    text = answer(
        host, entry, home, settings, note=lambda words: spool.log_failure(home, name, session, words)
    )
    output: str = host.output(name, printable(text))
    return _with_warning(output, _published(home, host)) if name == "SessionStart" else output


def _about_file(host: Any, event: JsonObject, payload: JsonObject, home: str, private: str | None) -> str:
    """Return the output for a file that was read: what memory knows about it, nothing about a private one."""
    from aether.api.timeline import file_reminder
    from aether.hosts.answer import is_first

    path, asking = event["read"].get("file_path"), os.environ.get(host.PROCESS_VARIABLE, "")
    is_hidden = bool(private) and is_private(event["read"], private or "", event["directory"])
    if not isinstance(path, str) or is_hidden or not is_first(home, payload, asking):
        return ""
    text = file_reminder(path, home=home, session=event["session"])
    output: str = host.output(event["event"], printable(text)) if text else ""
    return output


def _not_stored(
    host: Any, home: str, reason: Exception, outcome: str = "The session goes on without its memory."
) -> str:
    """Return the output by which the user learns of a failure that no log could take."""
    what = str(reason) if isinstance(reason, AetherError) else f"{home}: {reason}"
    message: str = host.message(printable(f"aether: {what.rstrip('.')}. {outcome}"))
    return message


def printable(text: str) -> str:
    """Return `text` without lone surrogates, which would end the process while it prints."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- The entry of an event: small, and without secrets


def entry_of(event: JsonObject, *, private: str = "") -> JsonObject | None:
    """Return the entry of an event that a host's module translated; None if nothing of it is kept.

    `private` are the patterns of `claude.private_paths`.

    >>> entry_of({"event": "UserPromptSubmit", "session": "s", "prompt": "Use <private>my</private> SQLite"})
    {'event': 'UserPromptSubmit', 'session': 's', 'prompt': 'Use  SQLite'}
    """
    kind = EVENTS.get(event["event"])
    if kind is None or not kind.is_kept:
        return None
    entry: JsonObject = {"event": event["event"], "session": _name(event["session"])}
    for field, value in event.items():
        if field in _LIMITS:
            entry[field] = bounded(value, *_LIMITS[field])
        elif field == "said":
            entry[field] = _interim(value)
        elif field == "directory" and kind.is_placed:
            entry[field] = _name(value, PATH_CHARS)
        elif isinstance(value, bool):
            entry[field] = value
        elif isinstance(value, str) and field not in ("event", "session", "directory"):
            entry[field] = _name(value)
    if kind.of_tools:
        call = _call(event.get("call") or {}, private, str(event.get("directory", ""))[:PATH_CHARS])
        if call is None:
            return None
        entry |= call
    return {name: value for name, value in entry.items() if value not in ("", [], False) or name == "session"}


def bounded(text: str, head: int, tail: int) -> str:
    r"""Return `text` without what is private or secret, cut to its first `head` and last `tail` characters.

    >>> bounded("a" * 30 + " " + "b" * 47, 4, 4)
    'aaaa\n[… 70 characters left out …]\nbbbb'
    """
    text = without_blocks(text)
    if len(text) <= head + tail:
        return redact(text)
    first = _cut(redact(text[: head + SLACK_CHARS]), head)
    last = _cut(redact(text[-(tail + SLACK_CHARS) :])[::-1], tail)[::-1]
    return f"{first}\n[… {len(text) - len(first) - len(last)} characters left out …]\n{last}"


def _cut(text: str, most: int) -> str:
    """Return the start of `text`; if redaction left less, without its last word, which the cut may have torn."""
    if len(text) > most:
        return text[:most]
    return text[: max(text.rfind(" "), text.rfind("\n"), 0)]


def _interim(texts: list[JsonObject]) -> list[JsonObject]:
    """Return the texts before the last message, each bounded, as many from the end as may be kept."""
    bounded_texts: list[JsonObject] = []
    room = ALL_INTERIM_CHARS
    for part in reversed(texts):
        text = bounded(part["text"], *INTERIM_CHARS)
        room -= len(text)
        if room < 0:
            break
        if text.strip():
            names = {name: _name(part[name]) for name in ("id", "uuid", "at", "by") if part.get(name)}
            bounded_texts.append(
                {"text": text, **names} | ({"part": part["part"]} if part.get("part") else {})
            )
    return bounded_texts[::-1]


def _call(call: JsonObject, private: str, directory: str) -> JsonObject | None:
    """Return the entry of a call and its output; None without one, or if it is about a private path."""
    if not call or (private and is_private(call["input"], private, directory)):
        return None
    limits = TEXT_CHARS if call.get("is_speech") else OUTPUT_CHARS
    entry: JsonObject = {
        "tool": _name(call["tool"]),
        "input": _trimmed(redacted(_shortened(call["input"], [ALL_INPUT_CHARS + SLACK_CHARS], MOST_DEPTH))),
        "output": bounded(call["output"], *limits),
    }
    entry |= {"failed": True} if call["failed"] else {}
    return entry | ({"id": _name(call["id"])} if call["id"] else {})


def _shortened(value: Any, room: list[int], depth: int) -> Any:
    """Return `value` with its texts cut if they, or all together, are too long; `room` is counted down."""
    if isinstance(value, str):
        text = without_blocks(value)[: min(INPUT_CHARS + SLACK_CHARS, room[0])]
        room[0] -= len(text)
        return text
    if isinstance(value, dict):
        pairs = list(value.items())[:MOST_ENTRIES] if depth else []
        return {key[:NAME_CHARS]: _shortened(item, room, depth - 1) for key, item in pairs}
    if isinstance(value, list):
        return [_shortened(item, room, depth - 1) for item in (value[:MOST_ENTRIES] if depth else [])]
    return value


def _trimmed(value: Any) -> Any:
    if isinstance(value, str):
        return value[:INPUT_CHARS]
    if isinstance(value, dict):
        return {key: _trimmed(item) for key, item in value.items()}
    return [_trimmed(item) for item in value] if isinstance(value, list) else value


def _name(name: str, most: int = NAME_CHARS) -> str:
    """Return a name without secrets: whoever names an agent may put anything there. Most are UUIDs, which cost no pattern."""
    name = name[:most]
    parts = name.removesuffix(".jsonl").split("-")
    is_uuid = [*map(len, parts)] == [8, 4, 4, 4, 12] and all(map(_HEX.issuperset, parts))
    return name if is_uuid else redact(name)


# --- Settings, input and deadline


def _settings(home: str, name: str, session: str) -> tuple[Settings, str | None, str]:
    """Return the settings, the private paths, and the errors of the settings.

    A wrong setting has its default; but the private paths are None if they may be set and cannot be read. Events of
    tools, and prompts before any work has settled, need no architect: a home that names one costs them nothing.
    """
    asks = os.path.join(home, ASKS, f"{session}.json")  # of a session that is a UUID, as those of hosts are
    needs_none = EVENTS.get(name, UNKNOWN).of_tools or (
        name == "UserPromptSubmit" and not os.path.exists(asks)
    )
    tables = ("claude", "memory") if needs_none else ("claude", "memory", "architect")
    is_set = any(
        variable.startswith(f"AETHER_{table.upper()}_") for variable in os.environ for table in tables
    )
    for path in (os.path.join(home, "config.toml"), os.path.realpath(user_file())):
        try:
            # An architect may be called so.
            text = regular.read(path, regular.CONFIG_BYTES).replace(b"claude-code", b"")
            is_set = is_set or any(table.encode() in text for table in tables)
        except FileNotFoundError:
            continue
        except (OSError, AetherError):
            is_set = True  # an unreadable file may hold a setting of hooks
    if not is_set:
        return Defaults, Defaults.claude_private_paths, ""
    from pathlib import Path

    from aether.store.config import hides_private_paths, load_with_errors

    settings, problems = load_with_errors(Path(home))
    if settings.memory_agents == "off":  # nothing is captured, and no agent is asked to state anything
        settings = settings._replace(claude_capture=False, architect=Defaults.architect)
    words = " ".join(problems.values())
    if hides_private_paths(problems):
        return (
            settings,
            None,
            f"Calls of tools are not kept, for claude.private_paths cannot be read. {words}",
        )
    return settings, settings.claude_private_paths, words


def _parse(stdin: bytes) -> JsonObject:
    def number(digits: str) -> int | str:
        # Python refuses to make a number of some thousand digits.
        return int(digits) if len(digits) <= MOST_DIGITS else digits

    try:
        payload = json.loads(stdin, parse_int=number)
    except UnicodeDecodeError:
        payload = json.loads(stdin.decode("utf-8", "replace"), parse_int=number)
    if not isinstance(payload, dict):
        raise ValueError("the event is no JSON object")  # noqa: TRY004 - caught and logged above
    return payload


def set_deadline(seconds: float, home: str, name: str, session: str) -> None:
    """Let the process exit with 0 and a line in the log after `seconds`; 0 removes the deadline."""
    import faulthandler

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: _time_out(home, name, session))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.cancel_dump_traceback_later()
    if seconds:
        if not _DEVNULL:
            _DEVNULL.append(os.open(os.devnull, os.O_WRONLY))
        faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=_DEVNULL[0])


def _time_out(home: str, name: str, session: str) -> NoReturn:
    spool.log_failure(home, name, session, "was not done in time")
    os._exit(0)
