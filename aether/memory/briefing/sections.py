"""Sections: the dated lines of each section of a briefing, the newest first.

*Goal and rules*: the goal, protected content, rules, signals. Who could have said a statement decides whether it is
a rule: capture types only a person's words as `constraint` or `preference`; such an item of a sub-agent, or one typed
so by a model architect, is *noted*, and a pattern of long-term memory is marked as learned. Injected text is left out.

*Files and commands*: each changed file once, by its shortest path from the project's root, scratch files last; of a
command line only the parts that test, build or change something, without the looking around.

*Work*: requests, decisions, results and open problems. Items of working memory cover the time since the
last compression, sessions the time before. Merging and layout of the lines is in `block`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

from aether.hints import Any, cast
from aether.memory import signals
from aether.memory.briefing.block import Line, judged, one_line, timestamp, topic_words
from aether.memory.briefing.standing import (
    ISSUE,
    RUNS,
    accounts,
    is_step,
    reported_on,
    says_state,
    under_way,
    undone_in,
)
from aether.memory.capture.notes import RULE_TYPES, SOURCE_MAIN, SOURCE_WORKER, noting_agent
from aether.memory.items import items_of
from aether.memory.sessions import EXTRACTIVE, ended_in, last_heard, sessions_of
from aether.text.accounts import announces, asks_back, refuses, whole
from aether.text.cleaning import SUMMARY_HEAD
from aether.text.endings import Ending, endings
from aether.text.regex import lazy
from aether.text.words import CODE_SPAN, pluralize, sentences, stems
from aether.tuples import NamedTuple
from aether.types import Item

# Characters: a rule is a sentence, a request or result is shortened to its start.
RULE_CHARS = 300
PROTECTED_CHARS = 600
TEXT_CHARS = 240
# The request that is being worked on says most of all; one that no report followed is all that the next session is to do.
CURRENT_CHARS = 320
UNREPORTED_CHARS = 900
_PERSONS = frozenset({"user_input", "decision", *RULE_TYPES})
_SIGNAL_TYPES = ("FOCUS", "REDIRECT", "FEEDBACK", "CHECKIN")


def known_items(memory: Mapping[str, Any]) -> list[Item]:
    """Return the items that a briefing is made of, the newest first: those of working memory, and those that sessions keep."""
    return _newest_first([*reversed(items_of(memory)), *session_items(newest_sessions(memory))])


def _newest_first(items: Iterable[Item]) -> list[Item]:
    """Return the items that were not injected by time; those of equal times keep their order."""
    found: list[tuple[str, Item]] = []
    for item in items:
        metadata = item["metadata"]
        if not metadata.get("injected"):
            given = metadata["timestamp"]
            at = timestamp(given)  # a hand edit may have written another form
            same = item if at == given else {**item, "metadata": {**metadata, "timestamp": at}}
            found.append((at, same))
    return [item for _, item in sorted(found, key=itemgetter(0), reverse=True)]


def newest_sessions(memory: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the sessions with their times, the newest first; of equal times, the one added later."""
    found = [(timestamp(last_heard(session)), session) for session in sessions_of(memory)]
    found.reverse()  # sorting keeps the order of equals
    return sorted(found, key=lambda each: each[0], reverse=True)


def origin_of(item: Item) -> tuple[tuple[str, ...], str]:
    """Return the id of an item, none for one made of a session's text, and who vouches for it."""
    found = str(item.get("id", ""))
    return ((found,) if found else ()), str(item["metadata"].get("evidence", ""))


def goal(documents: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the active goal, the goal of the colony or of its newest INIT signal, and its phase."""
    colony = documents["COLONY_STATE"]
    yield from _active_goal(documents.get("goals") or {})
    given = (
        str(signal["metadata"].get("context", ""))
        for signal in reversed(documents["pheromones"]["active_pheromones"])
        if signal["type"].upper() == "INIT"
    )
    if text := colony["goal"] or next(given, ""):
        yield Line("goal", f"Goal: {one_line(text, RULE_CHARS)}")
    status = colony["colony_status"]
    phase = status["current_phase"]
    if phase is not None:
        planned: Mapping[str, Any] = next(
            (each for each in colony["phases"]["roadmap"] if each["phase"] == phase), {}
        )
        named = ", ".join(
            one_line(planned[field], TEXT_CHARS) for field in ("name", "goal") if planned.get(field)
        )
        moved = timestamp(colony["state_machine"]["last_transition"])
        yield Line("goal", f"Phase {phase} is {status['state']}" + (f": {named}" if named else ""), moved)


def _active_goal(goals: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the goal that is worked on, with its open blocker and its progress."""
    held = (
        each for each in goals.get("goals", ()) if each["id"] == goals["current"] and not each.get("outcome")
    )
    for found in held:
        blocked = [each for each in found["blockers"] if not each.get("resolved_at")]
        steps = [step["status"] == "completed" for step in found["subtasks"]]
        notes = [f"{sum(steps)} of {len(steps)} steps completed"] if steps else []
        notes += [f"blocked by: {one_line(each['description'], TEXT_CHARS)}" for each in blocked[-1:]]
        text = f"Active goal: {one_line(found['description'], RULE_CHARS)}"
        yield Line(
            "goal", "; ".join([text, *notes]), timestamp(found["created_at"]), ids=(found["id"],),
            evidence=found["evidence"],
        )  # fmt: skip


def protected(memory: Mapping[str, Any], items: Iterable[Item]) -> Iterator[Line]:
    """Yield the protected content of `items`, the newest first, and what older sessions keep of theirs."""
    for item in items:
        if item["metadata"].get("protected"):
            ids, evidence = origin_of(item)
            text = one_line(item["content"], PROTECTED_CHARS)
            yield Line("protected", text, item["metadata"]["timestamp"], ids=ids, evidence=evidence)
    for at, session in newest_sessions(memory):
        for text in (session.get("metadata") or {}).get("protected", []):
            yield Line("protected", one_line(text, PROTECTED_CHARS), at)


def rules(
    memory: Mapping[str, Any], items: Sequence[Item], *, wide: bool = False, ended: Collection[str] = ()
) -> Iterator[Line]:
    """Yield the constraints and preferences of `items`, the newest first, then what only the text of a session says.

    `wide` marks those of all projects; `ended` has the names of the statements of sessions that were revoked.
    """
    note = "all projects" if wide else ""
    said = [item for item in items if item["type"] in RULE_TYPES and not item["metadata"].get("protected")]
    for item in said:
        text = one_line(item["content"], RULE_CHARS)
        line = Line("rules", text, item["metadata"]["timestamp"], note, *origin_of(item))
        by = noting_agent(item)
        yield line._replace(section="noted", note=by) if by else line
    for at, session in newest_sessions(memory):
        known, keeps = session.get("metadata") or {}, keeps_items(session)
        who = (known.get("architect") or {}).get("backend") or "an architect"
        for name, kind, _, entry in _statements(session):
            if kind == "decision" or name in ended or (keeps and _repeats(entry["content"], said)):
                continue
            text = one_line(entry["content"], RULE_CHARS)
            line = Line("rules", text, at, note, (session["session_id"],))
            noted = any(each in entry["content"] for each in known.get("noted", []))
            trusted = not noted and (who == EXTRACTIVE or entry.get("carried"))
            by = "" if noted else f"as {who} summed it up"
            yield line if trusted else line._replace(section="noted", note=by, evidence="agent")


def _statements(session: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield the rules and decisions that no item of `session` says: a name of its own, type, text and entry of each."""
    known, keeps = session.get("metadata") or {}, keeps_items(session)
    if keeps and (known.get("architect") or {}).get("backend") == EXTRACTIVE:
        return  # it has the words of its items
    for place, entry in enumerate(session.get("high_value_items") or []):
        binds = entry.get("type") in RULE_TYPES and not entry.get("injected")
        carried = keeps and entry.get("carried")
        if binds and not carried and not ended_in(session, entry["content"]):
            yield f"{session['session_id']}/rule {place}", entry["type"], entry["content"], entry
    for place, entry in enumerate(session.get("key_decisions") or []):
        if not ended_in(session, entry["decision"]):
            yield f"{session['session_id']}/decision {place}", "decision", entry["decision"], entry


def _repeats(text: str, items: Iterable[Item]) -> bool:
    """Return whether `text` says what one of `items` says, or a part of it."""
    folded = text.casefold()
    return any(each["content"].casefold() in folded or folded in each["content"].casefold() for each in items)


def revoked_in(memory: Mapping[str, Any], items: Iterable[Item] | None = None) -> dict[str, str]:
    """Return the ids of the items, patterns and statements of sessions that a person's later words ended, with their time.

    `items` are the `known_items` of `memory`, if they are known already.
    """
    stated, over = list[Item](), dict[str, str]()
    for one in memory["long_term_memory"]["patterns"]:
        if one["type"] in RULE_TYPES:
            if ended_at := pattern_ended_at(one):
                over[one["id"]] = ended_at
            else:
                stated.append(_matter(one["id"], one["type"], one["pattern"], timestamp(one["last_seen"])))
    for at, session in newest_sessions(memory):
        # What a session's text says was said before its end, nobody knows when.
        when = "" if keeps_items(session) else at
        stated += [_matter(name, kind, text, when) for name, kind, text, _ in _statements(session)]
    return over | revoked(known_items(memory) if items is None else items, stated)


def revoked(items: Iterable[Item], stated: Sequence[Item] = ()) -> dict[str, str]:
    """Return the ids of the rules and decisions that a person's later words ended, with the time of those words.

    Of equal times, the last item is older. A matter is ended by name if its words are those of one earlier rule or decision
    only, however often that was said; "roll back" ends what the person's message before it settled, "B after all" the last
    entry of a list that was taken up in the conversation. What is only `stated`, by patterns and texts of sessions, ends
    nothing itself. What is marked as ended already stays so.
    """
    ended: dict[str, str] = {}
    held: list[Item] = []
    of_person = [one for one in items if _is_of_person(one)]
    of_person.reverse()  # sorting keeps the order of equals
    for item in sorted(of_person, key=lambda one: one["metadata"]["timestamp"]):
        metadata = item["metadata"]
        if marked := metadata.get("ended_at"):
            ended[item["id"]] = str(marked)
            continue
        own, at = metadata.get("conversation", ""), metadata["timestamp"]
        ends = endings(_said(item))
        before = (
            [one for one in held if one["id"] not in ended and one["metadata"]["timestamp"] < at]
            if ends
            else []
        )
        for end in ends:
            near = [one for one in before if one["metadata"].get("conversation", "") == own]
            over: list[Item] = []
            match end.kind:
                case "named" if end.words:
                    earlier = [
                        one for one in stated if one["id"] not in ended and one["metadata"]["timestamp"] < at
                    ]
                    over = _named_by(end, before, earlier)
                case "named":
                    over = _one_matter([one for one in near if one["type"] in RULE_TYPES])
                case "last":
                    over = [one for one in near[-1:] if one["type"] == "decision"]
                case "picked":
                    over = [
                        one for one in near if one["type"] == "decision" and one["metadata"].get("reply")
                    ][-1:]
            ended |= {one["id"]: at for one in over}
        held.append(item)
    return ended


def _named_by(end: Ending, items: Sequence[Item], stated: Sequence[Item]) -> list[Item]:
    """Return the one matter that `end` names, among `items` and what is only `stated`; none if it may be one of several."""
    bound = [one for one in items if one["type"] != "user_input" and end.concerns(one["content"])]
    repeated = [one for one in stated if end.concerns(one["content"])]
    if not (bound or repeated):
        return []
    from aether.text.similarity import supporting  # only where something is ended

    # Patterns and architects put a rule in other words; another rule of that name has an item of its own.
    first = (bound or repeated)[0]["content"]
    same = supporting(first, [one["content"] for one in repeated])
    if bound:
        sessions = [one for at, one in enumerate(repeated) if at in same or "/" in one["id"]]
        return [*bound, *sessions] if _one_matter(bound) else []
    return list(repeated) if len(same) == len(repeated) else []


def _one_matter(items: Sequence[Item]) -> list[Item]:
    """Return `items` if they are one statement, however often it was said."""
    return list(items) if len({frozenset(stems(one["content"])) for one in items}) == 1 else []


def _said(item: Item) -> str:
    """Return the person's words of an item."""
    return item["metadata"].get("reply") or item["content"].rpartition("\nAnswered: ")[2]


def _is_of_person(item: Item) -> bool:
    return item["type"] in _PERSONS and not noting_agent(item) and "id" in item


def _matter(id: str, type: str, text: str, at: str) -> Item:
    return cast(Item, {**_item(type, text, at), "id": id})


def pattern_ended_at(pattern: Mapping[str, Any]) -> str:
    """Return when a person ended `pattern`, "" if nobody did, or it was said again since."""
    at = str((pattern.get("metadata") or {}).get("ended_at", ""))
    return at if at >= timestamp(pattern["last_seen"]) else ""


def learned_patterns(memory: Mapping[str, Any], *, wide: bool = False) -> Iterator[Line]:
    """Yield the patterns of long-term memory, the most certain first; those that are rules join the rules."""
    patterns = memory["long_term_memory"]["patterns"]
    for pattern in sorted(
        patterns, key=lambda each: (each["confidence"], timestamp(each["last_seen"])), reverse=True
    ):
        binds = pattern["type"] in RULE_TYPES and judged("rule", pattern["pattern"])
        if (binds or not wide) and not pattern_ended_at(pattern):
            times = f"learned in {pluralize(pattern['occurrences'], 'sessions')}" + (
                ", all projects" if wide else ""
            )
            section = "rules" if binds else "learned"
            text, at = one_line(pattern["pattern"], RULE_CHARS), timestamp(pattern["last_seen"])
            yield Line(section, text, at, times, (pattern["id"],))


def active_signals(
    documents: Mapping[str, Any], *, now: datetime, caste: str | None = None
) -> Iterator[Line]:
    """Yield the signals that are active for `caste` now, strongest first."""
    for signal in signals.active_signals(documents["pheromones"], now=now, caste=caste, types=_SIGNAL_TYPES):
        said = one_line(str(signal["metadata"].get("context", "")), TEXT_CHARS)
        strength = f"{signal['effective_strength']:.2f}"
        text = f"{signal['type']} {strength}: {said}"
        yield Line("signals", text, timestamp(signal["created_at"]), ids=(signal["id"],))


# Changes read: a file changed before them is no longer part of the current work.
LOOKED_AT_CHANGES = 200
# Far more than fit into any budget.
MOST_FILES = 60
MOST_SCRATCH = 3
# A root is written once and saves its length for each file; one with fewer parts saves little.
ROOT_PARTS = 4
ROOT_SHARE = 0.6

_CHANGE = lazy(r"(Created|Changed|Deleted) (.+?)(?: \((\d+) (edits|lines)\))?(?:: (.+))?", re.DOTALL)
_SCRATCH = lazy(
    r"(?:/private)?/(?:tmp|var/tmp|var/folders)/|/.*/\.claude/plans/|(?:.*/)?\.git/|(?:.*/)?(?:tmp|temp|scratch|scratchpad)/"
    r"|\$?\{?[A-Z_]*(?:TMP|TEMP|SCRATCH)[A-Z_]*\}?/|.*/AppData/Local/Temp/",
    re.DOTALL,
)
# The names that a change defines; its first line says nothing by itself, nor do names of tests below the name of their file.
_DEFINES = lazy(r"[\w.]+(?:, [\w.]+)*")
_DEFINES_TESTS = lazy(r"[Tt]est[A-Z_]")


class _Changed(NamedTuple):
    """The merged changes of one file; the newest one decides the action, and `first` is that of the oldest."""

    at: str
    action: str
    edits: int
    about: str
    id: str
    first: str = ""


def path_shortener(root: str) -> Callable[[str], str]:
    """Return a function that makes paths below `root` relative to it.

    >>> path_shortener("/home/me/p")("Changed /home/me/p/src/a.py and /srv/home/me/p/b.py")
    'Changed src/a.py and /srv/home/me/p/b.py'
    """
    base = root.rstrip("/") + "/"
    if base.count("/") < 3:  # below `/` or `/srv` lies more than a project
        return str
    found = re.compile(rf"(?<![\w.~/-]){re.escape(base)}")
    return lambda text: found.sub("", text) if base in text else text


def with_short_paths(items: Iterable[Item], root: str) -> Iterator[Item]:
    """Yield `items` with the paths below `root`, and below the directory of their conversation, relative to it."""
    shorten = path_shortener(root)
    shorteners: dict[str, Callable[[str], str]] = {"": str}
    for item in items:
        project = str(item["metadata"].get("project") or "")
        if project not in shorteners:
            shorteners[project] = path_shortener(project)
        content = shorteners[project](shorten(item["content"]))
        yield item if content == item["content"] else {**item, "content": content}


# Characters of the name of a directory.
NAME_CHARS = 60
_WORKTREE = lazy(r"[\\/]\.(?:claude[\\/])?worktrees[\\/].*", re.DOTALL)


def other_projects(items: Sequence[Item], shown: Sequence[Item], root: str) -> dict[str, str]:
    """Return by id the name of its project for each of `items` from another one than that of `root` and the `shown` items.

    A directory above, below or with the same name is no other one, nor is a worktree inside of a project.
    """
    here, everywhere = {*map(_project, shown)} - {""}, {*map(_project, items)} - {""}
    if not here or everywhere <= here:
        return {}
    own = [*map(_components, {*here, root})]
    places = {place: _components(place) for place in everywhere}
    known = {
        place: one_line(parts[-1], NAME_CHARS)
        for place, parts in places.items()
        if parts and not any(_is_same_project(parts, one) for one in own)
    }
    return {str(item.get("id", "")): known[_project(item)] for item in items if _project(item) in known}


def _project(item: Item) -> str:
    return str(item["metadata"].get("project") or "")


def _is_same_project(one: Sequence[str], other: Sequence[str]) -> bool:
    one, other = [part.casefold() for part in one], [part.casefold() for part in other]
    least = min(len(one), len(other))
    return least > 0 and (one[-1] == other[-1] or one[:least] == other[:least])


def _components(path: str) -> tuple[str, ...]:
    from aether.memory.timeline import components  # most homes are of one project

    return components(_WORKTREE.sub("", path))


def is_scratch(path: str) -> bool:
    """Return whether `path` lies in a directory for temporary files.

    >>> is_scratch("/private/tmp/x/a.go"), is_scratch("SCRATCH/run.sh"), is_scratch("src/template/a.go")
    (True, True, False)
    """
    return _SCRATCH.match(path) is not None


def changed_files(items: Iterable[Item], *, root: str = "", foremost: bool = False) -> list[Line]:
    """Return the changed files, each once with all its edits: the newest first, scratch files last.

    Relative paths are below `root`; without one, each is the only absolute path that ends in it, if there is one. With
    `foremost`, the most edited files come first, where older edits count less, and scratch files are left out.
    """
    found = _changed(items, root)
    places = {path: place for place, path in enumerate(found, start=1)}

    def key(path: str) -> tuple[bool, float]:
        return is_scratch(path), -found[path].edits / places[path] if foremost else places[path]

    ordered = sorted(found, key=key)
    lasting = sum(not is_scratch(path) for path in found)
    most = lasting + (0 if foremost else MOST_SCRATCH)
    return [_line(path, found[path]) for path in ordered[: min(MOST_FILES, most)]]


def _changed(items: Iterable[Item], root: str) -> dict[str, _Changed]:
    """Return the merged changes of each file, the newest first."""
    items = [*items]
    undone = undone_in(items)
    changes = (item for item in items if item["type"] == "code_change" and item.get("id") not in undone)
    read = [
        (item["metadata"]["timestamp"], str(item.get("id", "")), *match.groups())
        for item, _ in zip(changes, range(LOOKED_AT_CHANGES), strict=False)
        if (match := _CHANGE.fullmatch(item["content"].strip()))
    ]
    absolute = {path for _, _, _, path, *_ in read if path.startswith("/") and not root}
    found: dict[str, _Changed] = {}
    for at, item_id, action, path, number, unit, about in read:
        # The only absolute path that ends in a relative one is the same file.
        ending = [] if path.startswith("/") else [each for each in absolute if each.endswith(f"/{path}")]
        name = ending[0] if len(ending) == 1 else path
        known = found.get(name, _Changed(at, action, 0, "", item_id))
        edits = known.edits + (int(number) if unit == "edits" else 1)
        names = _DEFINES.fullmatch(about) and not _DEFINES_TESTS.match(about) if about else False
        hint = one_line(about, TEXT_CHARS // 3) if names else ""
        found[name] = known._replace(edits=edits, about=known.about or hint, first=action)
    # Of a file that was created and deleted again nothing is left.
    return {name: one for name, one in found.items() if (one.first, one.action) != ("Created", "Deleted")}


def _line(path: str, known: _Changed) -> Line:
    about = f": {known.about}" if known.about else ""
    text = f"{path} ({known.action.lower()}, {pluralize(known.edits, 'edits')}){about}"
    return Line("files", text, known.at, "", (known.id,) if known.id else (), "machine")


def common_root(lines: Sequence[Line]) -> str:
    """Return the deepest directory that contains most files of `lines`, or "" if it would save little."""
    held: dict[str, int] = {}
    for line in lines:
        parts = line.text.split(" (")[0].split("/")[:-1]
        for depth in range(ROOT_PARTS, len(parts) + 1):
            directory = "/".join(parts[:depth]) + "/"
            held[directory] = held.get(directory, 0) + 1
    least = max(2, ROOT_SHARE * len(lines))
    most = [root for root, files in held.items() if files >= least and root.startswith("/")]
    return max(most, key=lambda root: (len(root), root), default="")


# A longer command is a script that nobody runs again.
COMMAND_CHARS = 160
# The newest builds and tests.
MOST_CHECKS = 2
BEFORE_EDIT = "before the last edit"
PERHAPS_BEFORE_EDIT = f"perhaps {BEFORE_EDIT}"
# Items read of each type: far more than fit into any budget, far fewer than a full memory has.
LOOKED_AT = 60

# One command of a line with its quoted parts, or the operator between two.
_PIECE = lazy(
    r"""((?:"(?:\\.|[^"\\])*(?:"|\Z)|'[^']*(?:'|\Z)|\\.|\d?>&\d|&>|[^"'\\;&|\n]|&(?!&)|\\\Z)+)|(\|\||&&|[;|\n])""",
    re.DOTALL,
)
_PREFIX = lazy(
    r"(?:(?:do|then|else|if|elif|while|until|time|!|[({])(?:\s+|\Z)|[A-Za-z_]\w*=(?:\$\([^)]*\)|[^\s;]*)(?:\s+|\Z))+"
)
_NO_WORK = lazy(
    r"(?:for|case|select|read|done|fi|esac|\}|\)|break|continue|exit|return|wait|set|export|unset|source|\.|mkdir|touch|cp|mv|rm|ln|chmod|kill|pkill|"
    r"pushd|popd|curl|wget|sed|perl|awk|yes|basename|dirname|realpath|tee|column|comm|seq|command|open)(?:\s|\Z)|\\?\Z"
)
# An interpreter with its program on the command line or standard input.
_ON_THE_SPOT = lazy(
    r"(?:\S*/)?(?:python[\d.]*|node|ruby|php|bash|sh|zsh|osascript)(?:\s+-[a-zA-Z]*[ce]\b.*|\s+-(?:\s.*)?)?\Z",
    re.DOTALL,
)
_REDIRECTED = lazy(r"\s*(?:\d?>&\d|&?\d?>\s*/dev/null)")
_RAN = lazy(r"Ran `(.+?)`(?: \(\d+ runs\))?(?:: (?P<said>.*))?", re.DOTALL)
# A failed check that worked later, perhaps as another command.
_WORKED = lazy(
    r"`(.+?)` failed(?: \d+ times)?: .*\nWorked (?:after|when) [^\n]*?(?:: (?P<said>[^\n]*)|\.)", re.DOTALL
)
_WORKED_AS = lazy(
    r"`.+?` failed(?: \d+ times)?: .*\n(?:Part of it worked|Worked) as `([^`\n]+)`(?: [^\n]*?)?(?:: (?P<said>[^\n]*)|\.)",
    re.DOTALL,
)
_FAILED = lazy(r"`(.+?)` failed((?: \d+ times)?): (.*)", re.DOTALL)
_CHECK = lazy(
    r"(?:\b|_)(?:test\w*|pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|playwright|pre-commit|check|lint\w*|golangci-lint|mypy|ruff|tsc|eslint|build|vet|compile|clippy|verify|ci|make|run|npm|cargo|gradle|mvn)\b"
)
_FETCHES = lazy(r"\b(?:install|add|get|fetch|download|pull|clone|init|create|i)\Z")
# A test that failed alone passes when all tests do.
_TESTS = lazy(r"\b(?:test\w*|pytest|jest|vitest|mocha|rspec)\b")
_ALL_TESTS = lazy(
    r"(?:(?:pytest|tox|nox|jest|vitest)|(?:(?:mise|npm|pnpm|yarn|bun)(?: run)?|make|just|task|cargo|go|gradle|mvn|rake) (?:test|check|ci)(?:[:-]\w+)?(?: \./\.\.\.)?)\Z"
)
_HISTORY = lazy(r"(?:git|gh) ")
# What these did the state of the work tree says.
_CALLED = lazy(r"([\w-]+) \{")
_TITLED = lazy(r'"(?:title|subject|name)": "((?:\\.|[^"\\])*)"')
_IN_TREE = lazy(
    r"(?:git (?:add|commit|push|pull|fetch|switch|checkout|merge|rebase|reset|stash)|gh pr checkout)\b"
)
# What these did is done outside of the conversation; a directory `release` is only handled, or part of a path.
_PUBLISHES = lazy(
    r"(?!(?:git|tar|zip|unzip)\s)(?:.*[\s/:.])?(?:publish|deploy|release|upload)(?![\w/])|gh (?:pr merge|workflow run)\b|docker push|(?:kubectl|terraform|pulumi) (?:apply|up|rollout (?:restart|undo)|set image)\b"
    r"|helm (?:upgrade|install)\b|\S+ (?:.* )?(?:--prod\b|upgrade head\b)|git push\b.* --tags\b"
)
_FORMATS = lazy(r"(?:\S+ ){0,2}(?:\w*fmt|format|prettier|black|isort)\b(?!.*\bcheck\b)")
_QUOTED = lazy(r"`([^`]+)`")
# A variable that a command is given in front.
_SETS = lazy(r"[A-Za-z_]\w*=")
# The host reports the directory of its shell after any command.
_ASIDE = lazy(r"\s*Shell cwd was reset to\b.*", re.DOTALL)


class FailedCommand(NamedTuple):
    """A failed command: its effective parts, the number of failures, and its message."""

    parts: list[str]
    times: str
    complaint: str


def effective_parts(command: str) -> list[str]:
    """Return the parts of `command` that do something, without filters of their output.

    >>> effective_parts("cd app && go build ./... && echo OK && go test ./... 2>&1 | tail -22; yes | npm init; ls")
    ['go build ./...', 'go test ./...', 'npm init']
    """
    from aether.messages.shell import only_reads  # an import that only sessions with commands pay for

    found, heads = [], True
    for match in _PIECE.finditer(command):
        piece, between = match.groups()
        if between:
            heads = heads if between == "|" else True
        elif heads:
            bare = _REDIRECTED.sub("", piece.strip())
            opens = _PREFIX.match(bare)
            bare = bare[opens.end() if opens else 0 :].strip()
            if not _NO_WORK.match(bare) and not _ON_THE_SPOT.match(bare) and not only_reads(bare):
                found.append(bare)
                heads = False  # what is behind it in a pipe is a filter; what only feeds one is not the work
    return found


def without_flags(parts: Iterable[str]) -> set[str]:
    """Return `parts` without their flags: a run with other flags is the same command."""
    return {" ".join(word for word in part.split() if not word.startswith("-")) for part in parts}


def commands_in(text: str) -> set[str]:
    """Return the command in `text`, which is its first quotation, as parts without flags."""
    quoted = _QUOTED.search(text)
    return without_flags(effective_parts(quoted[1])) if quoted else set()


def parse_failure(text: str) -> FailedCommand | None:
    """Return the failed command that `text` reports, or None."""
    found = _FAILED.fullmatch(text)
    return FailedCommand(effective_parts(found[1]), found[2], _ASIDE.sub("", found[3])) if found else None


def format_failure(known: FailedCommand) -> str:
    """Return a failed command in words."""
    shown = _shown(known.parts, TEXT_CHARS // 2)
    return one_line(f"`{shown}` failed{known.times}: {known.complaint}", TEXT_CHARS)


def _shown(parts: list[str], most: int = COMMAND_CHARS) -> str:
    while len(parts) > 1 and len(" && ".join(parts)) > most:
        parts = parts[1:]  # what it said is mostly of its end
    return one_line(" && ".join(parts), most)


def commands_run(items: Iterable[Item], *, silent: bool = True) -> list[Line]:
    """Return the commands that mattered, each with its last run: the newest checks before the others.

    What the state of the work tree says as well and a formatter that said nothing are left out. Without `silent`, so is a
    check that said nothing, one from before the last edit whose programs ran again, and a command that neither checks nor
    publishes: what it did is done.
    """
    found: list[tuple[int, Line]] = []
    seen: set[str] = set()
    checked: set[str] = set()
    items = list(items)
    trees, edited = _trees(items), _edited(items)
    tree = trees[0]["content"] if trees else ""
    checks = MOST_CHECKS
    held = (item for item in items if item["type"] in RUNS and not item["metadata"].get("protected"))
    for item, _ in zip(held, range(LOOKED_AT), strict=False):
        run = next(
            (hit for form in (_RAN, _WORKED, _WORKED_AS) if (hit := form.fullmatch(item["content"]))), None
        )
        failed = None if run else _FAILED.fullmatch(item["content"])
        parts = effective_parts((run or failed or [""])[1]) if run or failed else []
        lasting = [part for part in parts if not _FORMATS.match(part)]
        known = without_flags(lasting or parts) or {_call(item["content"])}
        if (run and not parts) or known <= seen:
            continue
        seen |= known
        programs = _checks_in(parts)
        if item["type"] == "error" or (item["type"] == "solution" and not run):
            checked |= programs
            continue  # what ran before it is out of date
        said = _ASIDE.sub("", run["said"] or "").strip() if run else ""
        is_check = bool(run and programs)
        quiet = bool(run) and not said and ((is_check and not silent) or all(map(_FORMATS.match, parts)))
        over = not silent and bool(run) and not is_check and not any(map(_PUBLISHES.match, parts))
        if quiet or over or (tree and parts and all(map(_IN_TREE.match, parts))):
            continue
        note = _when(item, edited, trees) if is_check else ""
        if is_check and programs <= checked and note == BEFORE_EDIT:
            continue
        checked |= programs
        checks -= is_check
        if is_check and checks < 0:
            continue
        outcome = f": {said}" if said else ""
        text = f"Ran `{_shown(parts)}`{outcome}" if run else _call(item["content"])
        last = 0 if run and not any(map(_HISTORY.match, parts)) else 1 + bool(run)
        ids, _ = origin_of(item)
        line = Line(
            "commands", one_line(text, TEXT_CHARS), item["metadata"]["timestamp"], note, ids, "machine"
        )
        found.append((last, line))
    return [line for _, line in sorted(found, key=lambda each: each[0])]


def _trees(items: Iterable[Item]) -> list[Item]:
    """Return the states of the work tree, the newest first."""
    return [item for item in items if item["metadata"].get("role") == "tree"]


def _edited(items: Iterable[Item]) -> str:
    """Return when a file that lasts and is no prose was last edited, "" if none was."""
    made = (
        (item, _CHANGE.fullmatch(item["content"].strip())) for item in items if item["type"] == "code_change"
    )
    times = (
        item["metadata"]["timestamp"]
        for item, change in made
        if change and not is_scratch(change[2]) and not change[2].lower().endswith(".md")
    )
    return next(times, "")


# In the note of a work tree.
_BRANCH = lazy(r"\bThe branch is ([^\s,]+?)(?:, rebased|\.(?:\s|\Z))")


def _when(check: Item, edited: str, trees: Sequence[Item]) -> str:
    """Return the note of a `check` on another branch than the newest of `trees`, or from before the last edit, if it is known."""
    at = check["metadata"]["timestamp"]
    branches = [(one["metadata"]["timestamp"], _BRANCH.search(one["content"])) for one in trees]
    known = [(found[1], time) for time, found in branches if found]
    # It ran between two states, which may be of two branches.
    after = [name for name, time in known if time >= at][-1:]
    if after and after == [name for name, time in known if time < at][:1] and after[0] != known[0][0]:
        return f"on the branch {after[0]}"
    if at < edited:
        return BEFORE_EDIT
    # A command may edit as well.
    return ""


def _call(content: str) -> str:
    """Return a call of a tool by its name and the title among its arguments, which are JSON.

    >>> _call('mcp__tracker__create {"team": "A", "title": "Add retries"} → ok'), _call("Read the plan")
    ('Called mcp__tracker__create: Add retries', 'Read the plan')
    """
    found = _CALLED.match(content)
    if not found:
        return content
    title = _TITLED.search(content)
    return f"Called {found[1]}" + (f": {title[1]}" if title else "")


def _is_probe(parts: Iterable[str]) -> bool:
    """Return whether a command is given a temporary file: it tries something out, and fails on purpose or for its own sake.

    >>> _is_probe(["go test -overlay=/tmp/probe.json ./..."]), _is_probe(["GOTMPDIR=/tmp/go go test ./..."])
    (True, False)
    """
    words = (word for part in parts for word in part.split() if not _SETS.match(word))
    return any(is_scratch(word.rpartition("=")[2].strip("'\"")) for word in words)


def _checks_in(parts: Iterable[str]) -> set[str]:
    """Return the names of the tests, builds and the like among the `parts` of a command."""
    from aether.messages.shell import command_signature

    names = map(command_signature, parts)
    # What cannot be installed or fetched is done in another way.
    return {name for name in names if _CHECK.search(name) and not _FETCHES.search(name)}


LOOKED_AT_OPEN = 30
LOOKED_AT_COMMANDS = 100
# Older sessions count only by their decisions and summaries.
RECENT_SESSIONS = 3
# Characters of a summary, a result or the report of a caste.
SUMMARY_CHARS = 360
# A later result or solution with this share of a blocker's words is about it.
RESOLVED_SHARE = 0.5
# Fewer words are narration ("Now I see the pattern.").
LEAST_WORDS = 4
# "1" answers a question whose options are lost.
LEAST_ANSWER_WORDS = 2
# A longer reply has content.
REPLY_CHARS = 80
# A longer message asks for something, whatever followed it.
REMARK_WORDS = 16
LEAST_RESULT_WORDS = 12
# A longer one says more than what is to be done at once.
ERRAND_WORDS = 10
# The newest requests shown at most, if each only asks about the one before it.
ASKED_ABOUT = 3
# In so few the first one is what the work is for; in more only if it has so many characters.
FEW_REQUESTS = 3
PAGE_CHARS = 400
# Fates of requests; of others it is not known whether they are open.
DONE, DROPPED = "done", "dropped"
# How many of the newest items of each role or type a session keeps, and of how many conversations.
KEPT = {
    "request": 8, "user_input": 8, "answer": 6, "outcome": 6, "commit": 6, "change": 8, "tree": 1, "plan": 1,
    "current": 1, "pending": 1, "next": 1, "code_change": 60, "command": 12, "solution": 12, "error": 12, "blocker": 12,
}  # fmt: skip
KEPT_CONVERSATIONS = 2

# A sentence that starts with what was said before it; later on, "it" may be what the sentence names.
POINTS_BACK = lazy(
    r"(?:\W*\w[\w'’-]*\W+){0,3}(?:it|its|them|they|their|these|those|this|that)\b(?!.* \((?:asked|about): )",
    re.IGNORECASE,
)
_ENTRY_BREAK = lazy(r"[;\n]\s*(?=(?:Created|Changed|Deleted) \S|Ran `)")
_MARKUP = lazy(r"^#+ |^-{3,}$|^```\w*$|^\|[-:| ]+\|$", re.MULTILINE)
# A single act: with it the work goes on, and nothing is decided for later.
_ERRAND = lazy(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah|then|and|also|now|please|just|let's|lets|can you|could you|go ahead and)\W+)*"
    r"(?:push|commit(?! only)|merge|rebase|reply|respond|resolve|(?:pop|post|write|leave|add) an? (?:short )?(?:comment|reply)|(?:open|create) an? (?:draft )?(?:pr|pull request)|mark)\b",
    re.IGNORECASE,
)
# Words rather than code, a log or an entry of a list.
_SENTENCE = lazy(r"(?!.*[{}<>|;`])[A-Za-z][\w' ,.?!/()-]*\Z", re.DOTALL)
_CUT = " […] "
_DIALOGUE = lazy(r"Asked: (.*?)\s*Answered: (.*)", re.DOTALL)
# As Claude Code writes a question and what a person picked or wrote, perhaps with quotes in it.
_PICKED = lazy(r'"(.+?)"="(.+?)"(\s+(?:user )?notes: .*)?', re.DOTALL)
_PLACEHOLDER = lazy(r"\[[^\]]*\]")
_TROUBLE = lazy(
    r"\b(?:fail\w*|errors?|cannot|can't|couldn't|unable|broken|breaks?|bugs?|missing|blocked|blocks?|wrong|crash\w*|"
    r"doesn't|don't work|not work\w*|stuck|denied|refused|unavailable|conflicts?|leaks?|hangs?|time[sd]? out|inconsistent)\b",
    re.IGNORECASE,
)
# Lines of a log that a person pasted: each starts with a time, or an hour of a day.
_LOGGED = lazy(
    r"(?:^[ \t]*\W?(?:\d{4}-\d\d-\d\d[T ]\d\d:|[A-Z][a-z]{2} +\d{1,2} \d\d:|\d\d:\d\d:\d\d\b)[^\n]*(?:\n\s*|\Z)){2,}",
    re.MULTILINE,
)
_WORD = lazy(r"[a-z']+")
# Words of encouragement, without anything about the work.
_ENCOURAGEMENT = frozenset(
    "a ahead all alright and apply approve approved but cheers continue cool correct do done exactly fine for go going good "
    "great ha hi hello hmm i i'm is it it's keep lgtm like looks lovely me my nah next nice no nope now ok okay on one perfect "
    "please proceed really right same so sorry sounds super sure thank thanks that that's the then this try very wait "
    "well with wonderful works would y yeah yep yes you fix up".split()
)
# A request with such a word says how something is to be done, and not only what.
_STEERS = lazy(
    r"\b(?:should(?:n['’]?t)?|must|prefer|rather|instead|let['’]?s|keep|leave|only|don['’]?t|not|without|never|always|but|because|i think|i want)\b",
    re.IGNORECASE,
)
_INQUIRES = lazy(
    r"\W*(?:\w\)\W*)?(?:(?:can|could) you (?:please )?(?:check|look|see|explain|show|tell)|what|why|how|where|who|which|(?:are|is) there|do we|did|does)\b",
    re.IGNORECASE,
)
# What such a sentence goes on from is not shown.
_GOES_ON = lazy(r"\W*(?:or|but|and)\b", re.IGNORECASE)
_BOTH = lazy(r"^(?=.{0,60}\Z).*\b(?:both|these|those|them)\b(?! \w+s\b)", re.IGNORECASE)
LEAST_STEER_WORDS = 5
# A path, a name, a number or code: a remark with one has content.
_NAMES = lazy(r"[`/_#\d]|\w\.\w|[a-z][A-Z]|https?:")


def keeps_items(session: Mapping[str, Any]) -> bool:
    """Return whether `session` keeps items whole, as each has since it is known how to; others keep lists of texts."""
    return bool((session.get("metadata") or {}).get("items"))


def kept_items(held: Sequence[Item], ended: Collection[str] = ()) -> list[Item]:
    """Return those of the items `held` of a session that briefings still need, in their order.

    These are all protected ones, rules and decisions of a person that nothing `ended`; and of the newest conversations the
    newest items of each kind of work, and the first request.
    """
    newest = [item for item in _newest_first(reversed(held)) if item["id"] not in ended]
    # Conversations that say where their work is come first.
    ordered = [*filter(says_state, newest), *newest]
    conversations = list(dict.fromkeys(item["metadata"].get("conversation", "") for item in ordered))
    wanted = {item["id"] for item in newest if outlasts(item)}
    for conversation in conversations[:KEPT_CONVERSATIONS]:
        own = [item for item in newest if item["metadata"].get("conversation", "") == conversation]
        kinds = Counter[str]()
        for item in own:
            kind = item["metadata"].get("role") or item["type"]
            kinds[kind] += 1
            if kinds[kind] <= KEPT.get(kind, 0):
                wanted.add(item["id"])
        requests = [item["id"] for item in own if item["metadata"].get("role") == "request"]
        wanted.update(requests[-1:])
    fates = request_fates(newest)
    return [_with_fate(item, fates) for item in held if item["id"] in wanted]


def _with_fate(item: Item, fates: Mapping[str, str]) -> Item:
    fate = fates.get(item["id"])
    return {**item, "metadata": {**item["metadata"], "fate": fate}} if fate else item


def outlasts(item: Item) -> bool:
    """Return whether an item holds beyond the work that it was said in."""
    if item["metadata"].get("protected") or item["type"] in RULE_TYPES:
        return True
    return item["type"] == "decision" and _is_choice(item)


def session_items(sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Item]:
    """Yield the items that `sessions`, the newest first, keep: the newest ones all, the others what outlasts their work."""
    for at, (when, session) in enumerate(sessions):
        if keeps_items(session):
            found: list[Item] = session["metadata"]["items"]
            yield from (item for item in reversed(found) if at < RECENT_SESSIONS or outlasts(item))
        elif at < RECENT_SESSIONS:
            yield from _items_of_texts(when, session)


def _items_of_texts(at: str, session: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the verbatim content of a session that keeps no items as items again, without rules.

    The extractive architect joined several items of one type in one entry: files and commands are split again; of
    requests the end is kept, which is the newest. Its results are fragments, and left out. The details of a session's
    metadata take precedence: files, requests, results, and open errors.
    """
    known = session.get("metadata") or {}
    for name, kind in _DETAIL_TYPES.items():
        by = SOURCE_WORKER if name == "found" else SOURCE_MAIN
        found = known.get(name, [])
        yield from (_item(kind, text, at, by) for text in (found if name == "open" else reversed(found)))
    # The session of a hand-off lists its open errors: the others are history.
    covered = {kind for name, kind in _DETAIL_TYPES.items() if known.get(name)} | {"outcome"}
    covered |= {"error"} if "compression_id" in known else set()
    for entry in reversed(session.get("high_value_items") or []):
        kind = entry.get("type", "")
        if entry.get("injected") or kind in RULE_TYPES or kind in covered:
            continue
        content = entry["content"]
        if kind == "user_input" and len(content) > TEXT_CHARS:
            content = "..." + content[3 - TEXT_CHARS :].partition(" ")[2]
        yield from (_item(kind, part.strip(), at) for part in reversed(_ENTRY_BREAK.split(content)))


# The lists of the metadata of a session that keeps no items, and the type of the items in them.
_DETAIL_TYPES = {"files": "code_change", "open": "error", "asked": "user_input", "found": "outcome"}


def kept_in_session(sessions: Sequence[tuple[str, Mapping[str, Any]]], name: str) -> list[Line]:
    """Return what the newest session, if it keeps no items, says of the state of its work, or its next step."""
    for at, session in sessions[:1]:
        found = (session.get("metadata") or {}).get(name, [])
        return [
            Line(name, one_line(text, PROTECTED_CHARS), at, "", (session["session_id"],), "agent")
            for text in found
            if isinstance(text, str)
        ]
    return []


def _item(type: str, content: str, at: str, source: str = SOURCE_MAIN) -> Item:
    metadata = {"timestamp": at, "caste": None, "source": source}
    return cast(Item, {"type": type, "content": content, "metadata": metadata})


def of_type(items: Iterable[Item], type: str) -> Iterator[Item]:
    """Yield the newest items of one type that are not protected, which is a section of its own."""
    found = (item for item in items if item["type"] == type and not item["metadata"].get("protected"))
    yield from (item for item, _ in zip(found, range(LOOKED_AT), strict=False))


def requests(items: Sequence[Item], *, most: int = UNREPORTED_CHARS) -> Iterator[Line]:
    """Yield what the person asks for now: the last request, those before it that it only asks about, and what came first.

    Of the last one `most` characters are shown while no report followed it. The first one says what the work is for, in a
    short conversation or if it is a page. Those between that say how something is to be done are `asked`: the person has
    moved on. Dropped ones are left out.
    """
    fates = request_fates(items)
    found = [*_requests(item for item in items if fates.get(str(item.get("id"))) != DROPPED)]
    asked = next((item for item in items if item["metadata"].get("role") == "request"), None)
    unreported = UNREPORTED if found and found[0] is asked and under_way(items) else ""
    now = found[:1]
    if found and asks_back(_said(found[0])):  # what a question is about, without the questions before it
        now += [item for item in found[1:ASKED_ABOUT] if not asks_back(_said(item))][:1]
    if len(found) <= FEW_REQUESTS or (found and len(found[-1]["content"]) >= PAGE_CHARS):
        now += [item for item in found[-1:] if item not in now]
    # What was asked between was done or asked again; how it was to be done may still matter.
    reported = reported_on(items)
    earlier = [
        item for item in found if item not in now and (item is found[-1] or _may_still_matter(item, reported))
    ]
    for at, item in enumerate([*now, *earlier[-1:], *earlier[:-1]]):
        shown = TEXT_CHARS if at else most if unreported else CURRENT_CHARS
        text = _answer(item["content"], shown)
        section = "requests" if item in now else "asked"
        named = str(item.get("id", ""))
        followed = COMMITTED if fates.get(named) == DONE else REPORTED if named in reported else ""
        note = followed if at or not unreported else unreported
        yield Line(section, text, item["metadata"]["timestamp"], note, *origin_of(item))


def _may_still_matter(item: Item, reported: Collection[str]) -> bool:
    """Return whether an earlier request says how something is to be done, by itself; a question that was answered is over."""
    said = _said(item)
    answered = str(item.get("id", "")) in reported and _INQUIRES.match(said)
    alone = not (_GOES_ON.match(said) or _BOTH.search(said)) and len(said.split()) >= LEAST_STEER_WORDS
    return alone and not answered and bool(_STEERS.search(said))


def tasks(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the requests that ask for more than that a rule or decision ends."""
    return (line for line in requests(items) if not [*endings(line.text)])


# What is known of an earlier request: that somebody committed or reported, not what.
COMMITTED = "a commit followed"
REPORTED = "a report followed"
UNREPORTED = "no final report yet"


def request_fates(items: Sequence[Item]) -> dict[str, str]:
    """Return by id the fate of the requests that a machine or the person settled: `done` or `dropped`.

    `items` are the newest first. A request is done if a commit followed before the person's next message, which did not
    turn it down; the last one may go on. It is dropped if later words of the conversation end what it asks, and only it;
    of several sentences one may be left.
    """
    found: dict[str, str] = {}
    by_conversation: dict[str, list[Item]] = {}
    for item in items:
        if _is_request(item) or item["metadata"].get("role") == "commit":
            by_conversation.setdefault(item["metadata"].get("conversation", ""), []).append(item)
    for own in by_conversation.values():
        committed, refused = False, True
        for item in own:
            if not _is_request(item):
                committed = committed or not ISSUE.match(item["content"])
                continue
            if committed and not refused and item["type"] == "user_input":
                found[item["id"]] = DONE
            committed, refused = False, refuses(_said(item))
        found |= dict.fromkeys(_dropped([item for item in own if _is_request(item)]), DROPPED)
    known = {item["id"]: item["metadata"]["fate"] for item in items if "fate" in item["metadata"]}
    return known | found


def _dropped(asked: Sequence[Item]) -> Iterator[str]:
    """Yield the ids of the requests that a later one of `asked`, the newest first, ends."""
    for at, item in enumerate(asked):
        # "No more testing" ends a habit, and no request to write tests.
        for end in [one for one in endings(_said(item)) if one.words and one.only != "habit"]:
            over = [one for one in asked[at + 1 :] if end.concerns(_said(one))]
            if len(over) == 1 and len(sentences(_said(over[0]))) == 1:
                yield over[0]["id"]


def _is_request(item: Item) -> bool:
    return item["metadata"].get("role") == "request" and "id" in item


def _requests(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the newest requests: the last, the first, and of those between no remarks that no work followed."""
    asked: list[Item] = []
    idle: list[Item] = []
    worked = False
    for item in items:
        if is_step(item):
            worked = True
        elif _asks_now(item, asked) and not item["metadata"].get("protected") and not noting_agent(item):
            if _answer(item["content"]):
                # Only what was captured with its role is known to be without work.
                known = bool(asked) and not worked and item["metadata"].get("role") == "request"
                known = known and not asks_back(_said(asked[-1]))
                if known and len(item["content"].split()) <= REMARK_WORDS:
                    idle.append(item)
                asked.append(item)
            worked = False
            if len(asked) == LOOKED_AT:
                break
    yield from (item for item in asked if item is asked[-1] or item not in idle)


def _asks_now(item: Item, newer: Sequence[Item]) -> bool:
    """Return whether an item is a request: a decision is one while nothing was asked for after it."""
    is_newest = not newer and item["type"] == "decision" and item["metadata"].get("role") == "request"
    return item["type"] == "user_input" or is_newest


def _answer(text: str, most: int = TEXT_CHARS) -> str:
    """Return a person's message, followed by the question it answers, if any; "" if it has no content."""
    if picked := _PICKED.fullmatch(text):
        question, chosen, more = (one_line(part, most) for part in picked.groups(""))
        return f"{' '.join(filter(None, (chosen, more)))} (asked: {question})"
    dialogue = _DIALOGUE.fullmatch(text) if text.startswith("Asked: ") else None
    said = _LOGGED.sub("[…]\n", dialogue[2] if dialogue else text)
    answer = _with_end(said, most).lstrip("-*• ")
    words = _WORD.findall(answer.casefold().replace("’", "'"))
    encourages = words and not _NAMES.search(answer) and _ENCOURAGEMENT.issuperset(words)
    short = len(_PLACEHOLDER.sub("", answer).split()) < LEAST_ANSWER_WORDS
    if len(answer) <= REPLY_CHARS and (short or encourages):
        return ""
    if not dialogue:
        return answer
    asked = dialogue[1].rstrip("*_ ").endswith("?")
    beside = one_line(dialogue[1], TEXT_CHARS)
    return f"{answer} ({'asked' if asked else 'about'}: {beside})"


def _with_end(text: str, most: int) -> str:
    """Return `text` in one line of `most` characters; of a longer one the start and, if it is short, the last paragraph.

    What is to be done with what a person pastes is often said below it.
    """
    *before, end = re.split(r"\n\s*\n", text.strip())
    last = one_line(end, most)
    if not before or len(text) <= most or len(last) > most // 2 or not _SENTENCE.match(last):
        return one_line(text, most)
    start = one_line("\n\n".join(before), most - len(last) - len(_CUT))
    return f"{start}{_CUT}{last}"


def decisions(
    items: Sequence[Item], sessions: Sequence[tuple[str, Mapping[str, Any]]], *, ended: Collection[str] = ()
) -> Iterator[Line]:
    """Yield the decisions with their reasons; `ended` has the names of the statements of sessions that were revoked."""
    said = list(filter(_is_choice, of_type(items, "decision")))
    since = max((item["metadata"]["timestamp"] for item in items if _is_request(item)), default="")
    done = reported_on(items) if any(map(_asks_for_act, said)) else set[str]()
    # What was taken out of a message has its time.
    over = {item["metadata"]["timestamp"] for item in items if item.get("id") in done}
    found = [
        Line("decisions", text, at, REPORTED if at in over and _asks_for_act(item) else "", *origin_of(item))
        for item in said
        if len((text := _answer(item["content"])).split()) >= LEAST_WORDS
        # An errand is over when the person asks for something else.
        and not ((at := item["metadata"]["timestamp"]) < since and _is_errand(_chosen(item)))
    ]
    yield from found
    for at, session in sessions:
        for name, kind, decision, entry in _statements(session):
            if kind != "decision" or name in ended or (keeps_items(session) and _repeats(decision, said)):
                continue
            what, why = one_line(decision, TEXT_CHARS), one_line(entry["rationale"], TEXT_CHARS // 2)
            text = " - ".join(filter(None, (what, why)))
            if _PLACEHOLDER.sub("", what).strip() and len(text.split()) >= LEAST_WORDS:
                yield Line("decisions", text, at, "", (session["session_id"],), "agent")


def _chosen(item: Item) -> str:
    """Return what a person picked of the answers to a question of a tool, else the person's words."""
    picked = _PICKED.fullmatch(item["content"])
    return picked[2] if picked else _said(item)


def _asks_for_act(item: Item) -> bool:
    """Return whether a decision asks for a single act first, whatever else it says."""
    return _ERRAND.match(_chosen(item)) is not None


def _is_errand(said: str) -> bool:
    """Return whether a person only asks for a single act that takes the work on, and says no more."""
    acts = [one for one in said.split(", ") if len(one.split()) > 1]
    return bool(acts) and all(_ERRAND.match(one) and len(one.split()) <= ERRAND_WORDS for one in acts)


def _is_choice(item: Item) -> bool:
    """Return whether a decision is a person's, or one that a person took up."""
    metadata = item["metadata"]
    return metadata.get("evidence", "person" if "pointer" not in metadata else "") == "person"


def problems(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the checks that failed and have not passed since, and the blockers that nothing calls solved.

    Failures while looking around are not open, nor is one after which the person asked for something else, unless no file
    was changed since: then it fails still. Such a check is a line of the commands.
    """
    ran: set[str] = set()
    commands: list[str] = []
    ends: list[frozenset[str]] = []
    settling = looked = 0
    moved_on = asked = changed = False
    trees, edited = _trees(items), _edited(items)
    for item in items:
        kind, content = item["type"], item["content"]
        asked = asked or item["metadata"].get("role") == "request"
        changed = changed or kind == "code_change"
        moved_on = asked and changed
        if kind in ("command", "solution") and settling < LOOKED_AT_COMMANDS:
            settling += 1
            commands.append(content)
        if kind in ("solution", "outcome") and len(ends) < LOOKED_AT:
            ends.append(topic_words(content[:SUMMARY_CHARS]))
        if kind not in ("error", "blocker") or item["metadata"].get("protected") or looked >= LOOKED_AT_OPEN:
            continue
        looked += 1
        known = parse_failure(content) if kind == "error" else None
        if known:
            ran = ran.union(*map(commands_in, commands))
            commands.clear()
        # The last part of a chain runs after all others succeeded.
        again = known is not None and without_flags(known.parts[-1:]) <= ran
        whole = known is not None and any(map(_TESTS.search, known.parts)) and any(map(_ALL_TESTS.match, ran))
        over = known is not None and (again or whole or not _checks_in(known.parts) or _is_probe(known.parts))
        if kind == "blocker":  # solved if it names no trouble, or a later end shares its topic
            mine = topic_words(content)
            over = not _TROUBLE.search(CODE_SPAN.sub("", content))
            over = over or any(len(mine & end) >= RESOLVED_SHARE * len(mine) for end in ends)
        text = format_failure(known) if known else one_line(content, TEXT_CHARS)
        if text and not over:
            section = "commands" if known and moved_on else "open"
            note = _when(item, edited, trees) if known else ""
            yield Line(section, text, item["metadata"]["timestamp"], note, *origin_of(item))


def results(items: Iterable[Item]) -> Iterator[Line]:
    """Yield the latest results; the report of a sub-agent is one, however short."""
    for item in of_type(items, "outcome"):
        said = sentences(_MARKUP.sub(" ", item["content"]))
        if said and announces(said[-1]):  # an announced next step is outdated when the result is read
            said.pop()
        text = one_line(" ".join(said), SUMMARY_CHARS)
        if len(text.split()) >= (LEAST_WORDS if noting_agent(item) else LEAST_RESULT_WORDS):
            yield Line("results", text, item["metadata"]["timestamp"], "", *origin_of(item))


def earlier_work(
    sessions: Sequence[tuple[str, Mapping[str, Any]]], items: Iterable[Item], *, ended: Collection[str] = ()
) -> Iterator[Line]:
    """Yield what earlier sessions were about, without those whose content is among `items`, the newest first.

    Of a session that keeps items it is one sentence: the last commit, or what the person asked for first, unless it is
    among `ended`. Of others it is the start of the summary. The content of a session is among `items` if these are its own,
    unless a host summed it up in another form than by parts.
    """
    shown = {item.get("id") for item in items}
    for at, session in sessions:
        known = session.get("metadata") or {}
        kept: list[Item] = known.get("items") or []
        own = any(item["id"] in shown for item in kept if not outlasts(item))
        by = known.get("architect") or {}
        hosts = "summary" in by.get("task", "")
        if own and not (hosts and not SUMMARY_HEAD.search(session["summary"])):
            continue
        if (
            "items" in known and by.get("backend") == EXTRACTIVE and not hosts
        ):  # it joins what several items say
            yield from _earlier(at, session, [item for item in kept if item["id"] not in ended])
        else:
            parts = SUMMARY_HEAD.split(session["summary"])[::2]  # every second is a name
            said = sentences(whole(next(filter(str.strip, parts), ""), SUMMARY_CHARS))
            text = " ".join(one for one in said if not ended_in(session, one))
            yield Line("earlier", text, at, "", (session["session_id"],), "agent")


def _earlier(at: str, session: Mapping[str, Any], kept: Sequence[Item]) -> Iterator[Line]:
    """Yield one sentence on the work of `session`, from the items that it keeps, if a machine or a person said one."""
    done = [one for one in accounts(_newest_first(reversed(kept))) if one.published][:1]
    if done:
        text, ids, evidence = done[0].paragraphs[0].text, (done[0].item["id"],), "machine"
    else:
        asked = [one for one in kept if one["type"] == "user_input" and not noting_agent(one)]
        said = [
            (one["id"], first)
            for one in asked
            if _answer(one["content"]) and not _DIALOGUE.match(one["content"])
            for first in sentences(one["content"].strip().partition("\n")[0].lstrip("# "))[:1]
        ]
        if not said:
            return
        text, ids, evidence = f"Asked: {said[0][1]}", (said[0][0],), "person"
    if len(text) <= SUMMARY_CHARS and len(text.split()) >= LEAST_WORDS and not ended_in(session, text):
        yield Line("earlier", one_line(text, SUMMARY_CHARS), at, "", ids, evidence)


def done_by_caste(items: Sequence[Item], caste: str) -> Iterator[Line]:
    """Yield the latest results, decisions, solutions and blockers of `caste`."""
    types = {"outcome", "decision", "solution", "blocker"}
    for item in items:
        if item["metadata"]["caste"] == caste and item["type"] in types:
            yield Line("caste", one_line(item["content"], SUMMARY_CHARS), item["metadata"]["timestamp"])
