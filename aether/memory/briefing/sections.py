"""Lines: what stands in memory beside the work itself, as dated lines: the goal, what must hold, what is signalled.

What counts as a rule is decided by who can have said it. Capture types as `constraint` or `preference` only what a
person wrote; a sub-agent's item of that type, and one that a model architect typed so, is *noted*, not a rule;
what long-term memory learned says that it was learned. What aether injected is left out.

Files: which files were changed, each told once, by the path that is shortest from the project's root.

What lies in a scratch directory comes last: it was made to find something out and is gone when this is read.

Commands: what of a command line is worth telling, and what became of it.

An agent looks around with long lines of shell that are of no use to anybody later; what tests, builds and changes
something stands among them. A line is told by those parts alone.

Work: what was asked, decided, changed, tried and left open, as dated lines, the newest first.

Working memory tells of the stretch since the last compression, sessions of those before it.

Merging: of several lines that say the same, or cannot both hold, the newest stays.

`text.similarity` decides, and only of lines that share most of their words: a briefing is made while somebody
waits, and most briefings hold no such lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from aether import clock
from aether.errors import InvalidInput
from aether.memory import signals
from aether.memory.capture.notes import RULE_TYPES, SOURCE_MAIN, SOURCE_WORKER, noting_agent, shorten
from aether.memory.items import items_of
from aether.memory.sessions import EXTRACTIVE, sessions_of
from aether.text.cleaning import without_injected
from aether.text.regex import lazy
from aether.text.words import STOPWORDS
from aether.types import Item

# Characters: a rule is a sentence, a request or result is told by its head and tail.
RULE_CHARS = 300
PROTECTED_CHARS = 600
TEXT_CHARS = 240
# What is older may well be over, and says so.
OLD_DAYS = 30
# `clock.stamp` writes this many characters.
_STAMP_CHARS = 27
_SIGNAL_TYPES = ("FOCUS", "REDIRECT", "FEEDBACK", "CHECKIN")


class Line(NamedTuple):
    """One line of a briefing."""

    section: str
    text: str
    at: str = ""
    """When it was said, as `clock.stamp` writes it; empty where nobody knows."""
    note: str = ""


def one_line(text: str, most: int) -> str:
    """Return `text` in one line of at most `most` characters, without what aether itself had put into it.

    >>> one_line("Use **SQLite**  for now", 100), one_line("Use SQLite for now", 14)
    ('Use SQLite for now', 'Use SQLite...')
    """
    whole = " ".join(without_injected(text).replace("**", "").split())
    if len(whole) <= most:
        return whole
    # Between words, where one ends near by, so that no name is torn.
    space = whole.rfind(" ", most // 3, most - 2)
    # In ASCII: the counter prices that in a tenth of the time.
    return whole[: space if space > 0 else most - 3].rstrip(" ,;:.") + "..."


def timestamp(text: object) -> str:
    """Return the time in `text` as `clock.stamp` writes it, or "" where it is none."""
    if isinstance(text, str) and len(text) == _STAMP_CHARS and text.endswith("Z"):
        return text
    try:
        return clock.stamp(clock.parse(str(text)))
    except InvalidInput:
        return ""


def day_of(at: str) -> str:
    """Return the day of a stamp."""
    return at[:10]


def date_and_age(at: str, *, now: datetime) -> list[str]:
    """Return the day of a stamp and, where that is great, its age; nothing where nobody knows when it was."""
    if not at:
        return []
    age = (now - clock.parse(at)).days
    return [day_of(at), f"{age} days ago"] if age > OLD_DAYS else [day_of(at)]


def format_line(line: Line, *, now: datetime) -> str:
    """Return `line` as it is told: its day, its age where that is great, its text.

    >>> format_line(Line("rules", "Never push.", "2026-01-01T00:00:00.000000Z"), now=datetime(2026, 3, 1, tzinfo=clock.parse("2026-01-01").tzinfo))
    '- 2026-01-01 (59 days ago) Never push.'
    """
    day, *age = date_and_age(line.at, now=now) or [""]
    note = f" ({line.note})" if line.note else ""
    return " ".join(filter(None, ["-", day, *(f"({each})" for each in age), line.text])) + note


def newest_items(memory: Mapping[str, Any]) -> list[Item]:
    """Return the items that somebody said or did, the one noted last first."""
    told = [_dated(item) for item in items_of(memory) if not item["metadata"].get("injected")]
    # Sorting keeps the order of equals, so that of two items of one instant the one added later is first.
    told.reverse()
    return sorted(told, key=lambda item: item["metadata"]["timestamp"], reverse=True)


def _dated(item: Item) -> Item:
    """Return `item` with its time as `clock.stamp` writes it: people write documents, too."""
    at = timestamp(item["metadata"]["timestamp"])
    if at == item["metadata"]["timestamp"]:
        return item
    return {**item, "metadata": {**item["metadata"], "timestamp": at}}


def newest_sessions(memory: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the sessions with their times, the newest first."""
    found = [(timestamp(session["compressed_at"]), session) for session in sessions_of(memory)]
    found.reverse()
    return sorted(found, key=lambda each: each[0], reverse=True)


def goal(documents: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the goal of the colony and the phase it is in."""
    colony = documents["COLONY_STATE"]
    said = colony["goal"] or next(_goals(documents["pheromones"]), "")
    if said:
        yield Line("goal", f"Goal: {one_line(said, RULE_CHARS)}")
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


def _goals(pheromones: Mapping[str, Any]) -> Iterator[str]:
    for signal in reversed(pheromones["active_pheromones"]):
        if signal["type"].upper() == "INIT":
            yield str(signal["metadata"].get("context", ""))


def protected(memory: Mapping[str, Any]) -> Iterator[Line]:
    """Yield what is marked protected, in working memory and in sessions."""
    for item in newest_items(memory):
        if item["metadata"].get("protected"):
            yield Line("protected", one_line(item["content"], PROTECTED_CHARS), item["metadata"]["timestamp"])
    for at, session in newest_sessions(memory):
        for text in (session.get("metadata") or {}).get("protected", []):
            yield Line("protected", one_line(text, PROTECTED_CHARS), at)


def rules(memory: Mapping[str, Any], *, wide: bool = False) -> Iterator[Line]:
    """Yield the constraints and preferences, newest first, then what was learned; `wide` marks those of all projects."""
    note = "all projects" if wide else ""
    for item in newest_items(memory):
        metadata = item["metadata"]
        if item["type"] in RULE_TYPES and not metadata.get("protected"):
            said = Line("rules", one_line(item["content"], RULE_CHARS), metadata["timestamp"], note)
            by = noting_agent(item)
            yield said._replace(section="noted", note=by) if by else said
    for at, session in newest_sessions(memory):
        known = session.get("metadata") or {}
        who = (known.get("architect") or {}).get("backend") or "an architect"
        for entry in session.get("high_value_items") or []:
            if entry.get("type") in RULE_TYPES and not entry.get("injected"):
                said = Line("rules", one_line(entry["content"], RULE_CHARS), at, note)
                noted = any(text in entry["content"] for text in known.get("noted", []))
                trusted = not noted and (who == EXTRACTIVE or entry.get("carried"))
                by = "" if noted else f"as {who} summed it up"
                yield said if trusted else said._replace(section="noted", note=by)


def learned_patterns(memory: Mapping[str, Any], *, wide: bool = False) -> Iterator[Line]:
    """Yield the patterns of long-term memory, the most certain first; those that are rules go with the rules."""
    patterns = memory["long_term_memory"]["patterns"]
    for pattern in sorted(
        patterns, key=lambda each: (each["confidence"], timestamp(each["last_seen"])), reverse=True
    ):
        binds = pattern["type"] in RULE_TYPES and _is_rule(pattern["pattern"])
        if binds or not wide:
            times = f"learned, {pattern['occurrences']}x" + (", all projects" if wide else "")
            section = "rules" if binds else "learned"
            yield Line(
                section, one_line(pattern["pattern"], RULE_CHARS), timestamp(pattern["last_seen"]), times
            )


def _is_rule(text: str) -> bool:
    from aether.text.classify import rule  # a young memory has learned nothing yet

    return rule(text) is not None


def active_signals(
    documents: Mapping[str, Any], *, now: datetime, caste: str | None = None
) -> Iterator[Line]:
    """Yield the signals that `caste` feels now, strongest first."""
    for signal in signals.active_signals(documents["pheromones"], now=now, caste=caste, types=_SIGNAL_TYPES):
        said = one_line(str(signal["metadata"].get("context", "")), TEXT_CHARS)
        strength = f"{signal['effective_strength']:.2f}"
        yield Line("signals", f"{signal['type']} {strength}: {said}", timestamp(signal["created_at"]))


# Changes looked through: a file that was changed before them is not what the work is about now.
LOOKED_AT_CHANGES = 200
# Far more than any budget holds.
MOST_FILES = 60
MOST_SCRATCH = 3
# A root is told once and saves its length for each file; one below `/home/user` saves little.
ROOT_PARTS = 4
ROOT_SHARE = 0.6

_CHANGE = lazy(r"(Created|Changed|Deleted) (.+?)(?: \((\d+) (edits|lines)\))?(?:: (.+))?", re.DOTALL)
_SCRATCH = lazy(
    r"(?:/private)?/(?:tmp|var/tmp|var/folders)/|(?:.*/)?(?:tmp|temp|scratch|scratchpad)/"
    r"|\$?\{?[A-Z_]*(?:TMP|TEMP|SCRATCH)[A-Z_]*\}?/|.*/AppData/Local/Temp/",
    re.DOTALL,
)
# First lines that are alike in many files.
_SAYS_NOTHING = lazy(
    r"#!|\W*(?:copyright|spdx|licen[sc]e)\b|(?:package|import|use|using|from|#include)\s|[\"'<][^\s\"']*[\"'>]?,?\Z|[^\w\s]*\Z|.*[{(]\Z",
    re.IGNORECASE,
)


class _Changed(NamedTuple):
    """What is known of one file; the newest change says most."""

    at: str
    action: str
    edits: int
    about: str


def path_shortener(root: str) -> Callable[[str], str]:
    """Return what tells paths below `root` from there.

    >>> path_shortener("/home/me/p")("Changed /home/me/p/src/a.py and /srv/home/me/p/b.py")
    'Changed src/a.py and /srv/home/me/p/b.py'
    """
    base = root.rstrip("/") + "/"
    if base.count("/") < 3:  # below `/` or `/srv` lies more than a project
        return str
    found = re.compile(rf"(?<![\w.~/-]){re.escape(base)}")
    return lambda text: found.sub("", text) if base in text else text


def with_short_paths(items: Iterable[Item], root: str) -> Iterator[Item]:
    """Yield `items` with the paths below `root` told from there."""
    short = path_shortener(root)
    for item in items:
        content = short(item["content"])
        yield item if content is item["content"] else {**item, "content": content}


def is_scratch(path: str) -> bool:
    """Tell whether `path` lies in a directory for what is thrown away.

    >>> is_scratch("/private/tmp/x/a.go"), is_scratch("SCRATCH/run.sh"), is_scratch("src/template/a.go")
    (True, True, False)
    """
    return _SCRATCH.match(path) is not None


def changed_files(items: Iterable[Item], *, root: str = "", foremost: bool = False) -> list[Line]:
    """Return the files that were changed, each once with all its edits: the last one first, scratch files last.

    Relative paths are below `root`; where nobody knows it, each is the one whole path that ends in it, if there is
    one. With `foremost`, those come first that were edited most, counted the less the longer ago that was.
    """
    found = _changed(items, root)
    places = {path: place for place, path in enumerate(found, start=1)}

    def key(path: str) -> tuple[bool, float]:
        return is_scratch(path), -found[path].edits / places[path] if foremost else places[path]

    ordered = sorted(found, key=key)
    lasting = sum(not is_scratch(path) for path in found)
    return [_line(path, found[path]) for path in ordered[: min(MOST_FILES, lasting + MOST_SCRATCH)]]


def _changed(items: Iterable[Item], root: str) -> dict[str, _Changed]:
    """Return what is known of each file, the one changed last first."""
    changes = (item for item in items if item["type"] == "code_change")
    read = [
        (item["metadata"]["timestamp"], *match.groups())
        for item, _ in zip(changes, range(LOOKED_AT_CHANGES), strict=False)
        if (match := _CHANGE.fullmatch(item["content"].strip()))
    ]
    whole = {} if root else _whole_paths({path for _, _, path, *_ in read})
    found: dict[str, _Changed] = {}
    for at, action, path, number, unit, about in read:
        name = whole.get(path, path)
        known = found.get(name, _Changed(at, action, 0, ""))
        edits = known.edits + (int(number) if unit == "edits" else 1)
        found[name] = known._replace(edits=edits, about=known.about or _hint(about or ""))
    return found


def _whole_paths(paths: set[str]) -> dict[str, str]:
    """Return for each relative path the one whole path that ends in it; a shell names files from where it stands."""
    absolute = [path for path in paths if path.startswith("/")]
    ends = {
        path: [each for each in absolute if each.endswith(f"/{path}")]
        for path in paths
        if not path.startswith("/")
    }
    return {path: found[0] for path, found in ends.items() if len(found) == 1}


def _hint(about: str) -> str:
    return "" if _SAYS_NOTHING.match(about) else one_line(about, TEXT_CHARS // 3)


def _line(path: str, known: _Changed) -> Line:
    about = f": {known.about}" if known.about else ""
    return Line("files", f"{path} ({known.action.lower()}, {known.edits}x){about}", known.at)


def common_root(lines: Sequence[Line]) -> str:
    """Return the deepest directory that holds most files of `lines`, "" where there is none worth a mention."""
    held: dict[str, int] = {}
    for line in lines:
        parts = line.text.split(" (")[0].split("/")[:-1]
        for depth in range(ROOT_PARTS, len(parts) + 1):
            directory = "/".join(parts[:depth]) + "/"
            held[directory] = held.get(directory, 0) + 1
    most = [
        root
        for root, files in held.items()
        if files >= max(2, ROOT_SHARE * len(lines)) and root.startswith("/")
    ]
    return max(most, key=lambda root: (len(root), root), default="")


# A command that is longer is a script, and nobody runs it again.
COMMAND_CHARS = 160
# Looked through: far more than any budget holds, far less than a full memory.
LOOKED_AT = 60

# One command of a line with what stands quoted in it, or what stands between two.
_PIECE = lazy(
    r"""((?:"(?:\\.|[^"\\])*(?:"|\Z)|'[^']*(?:'|\Z)|\\.|\d?>&\d|&>|[^"'\\;&|\n]|&(?!&)|\\\Z)+)|(\|\||&&|[;|\n])""",
    re.DOTALL,
)
_PREFIX = lazy(
    r"(?:(?:do|then|else|if|elif|while|until|time|!|[({])(?:\s+|\Z)|[A-Za-z_]\w*=(?:\$\([^)]*\)|[^\s;]*)(?:\s+|\Z))+"
)
_NO_WORK = lazy(
    r"(?:for|case|select|read|done|fi|esac|\}|\)|break|continue|exit|return|wait|set|export|unset|source|\.|mkdir|touch|cp|mv|rm|ln|chmod|kill|pkill|"
    r"pushd|popd|curl|wget|sed|perl|awk|basename|dirname|realpath|tee|column|comm|seq|command|open)(?:\s|\Z)|\\?\Z"
)
# An interpreter that is given its program on the spot.
_ON_THE_SPOT = lazy(
    r"(?:\S*/)?(?:python[\d.]*|node|ruby|php|bash|sh|zsh|osascript)(?:\s+-[a-zA-Z]*[ce]\b.*|\s+-(?:\s.*)?)?\Z",
    re.DOTALL,
)
_REDIRECTED = lazy(r"\s*(?:\d?>&\d|&?\d?>\s*/dev/null)")
_RAN = lazy(r"Ran `(.+?)`((?: \(\d+ runs\))?)(?:: (.*))?", re.DOTALL)
_FAILED = lazy(r"`(.+?)` failed((?: \d+ times)?): (.*)", re.DOTALL)
_REMEDY = lazy(r"(?:as `(.+?)`)?(?: ?(after changes to .+?))?(?:: .*|\.)?", re.DOTALL)
_HISTORY = lazy(r"(?:git|gh) ")
_QUOTED = lazy(r"`([^`]+)`")
# The host says where its shell stands, whatever it ran.
_ASIDE = lazy(r"\s*Shell cwd was reset to\b.*", re.DOTALL)


class FailedCommand(NamedTuple):
    """A command that failed: what of it did the work, how often, and what it said."""

    parts: list[str]
    times: str
    complaint: str


def effective_parts(command: str) -> list[str]:
    """Return the parts of `command` that do something, without what filters their output.

    >>> effective_parts("cd app && go build ./... && echo OK && go test ./... 2>&1 | tail -22; ls")
    ['go build ./...', 'go test ./...']
    """
    from aether.messages.shell import only_reads  # a session that ran nothing need not wait for it

    found, heads = [], True
    for match in _PIECE.finditer(command):
        piece, between = match.groups()
        if between:
            heads = between != "|"
        elif heads:
            bare = _REDIRECTED.sub("", piece.strip())
            opens = _PREFIX.match(bare)
            bare = bare[opens.end() if opens else 0 :].strip()
            if not _NO_WORK.match(bare) and not _ON_THE_SPOT.match(bare) and not only_reads(bare):
                found.append(bare)
            heads = False
    return found


def without_flags(parts: Iterable[str]) -> set[str]:
    """Return `parts` without their flags: a run with other flags is that command again."""
    return {" ".join(word for word in part.split() if not word.startswith("-")) for part in parts}


def commands_in(text: str) -> set[str]:
    """Return what `text` says was run, by `names`; the first thing it quotes is that."""
    quoted = _QUOTED.search(text)
    return without_flags(effective_parts(quoted[1])) if quoted else set()


def parse_failure(text: str) -> FailedCommand | None:
    """Return what `text` says of a command that failed, None where it says something else."""
    found = _FAILED.fullmatch(text)
    return FailedCommand(effective_parts(found[1]), found[2], _ASIDE.sub("", found[3])) if found else None


def format_failure(known: FailedCommand, most: int = TEXT_CHARS) -> str:
    """Return a failed command as it is told."""
    shown = _shown(known.parts, min(COMMAND_CHARS, most // 2))
    return one_line(f"`{shown}` failed{known.times}: {known.complaint}", most)


def _shown(parts: list[str], most: int = COMMAND_CHARS) -> str:
    whole = [part for part in parts if not part.endswith("…")] or parts
    return one_line(" && ".join(whole), most)


def commands_run(items: Iterable[Item]) -> list[Line]:
    """Return the commands that mattered, each as it was run last: how to build and test before what was committed."""
    found: list[tuple[int, Line]] = []
    seen: set[str] = set()
    held = (item for item in items if item["type"] == "command" and not item["metadata"].get("protected"))
    for item, _ in zip(held, range(LOOKED_AT), strict=False):
        run = _RAN.fullmatch(item["content"])
        parts = effective_parts(run[1]) if run else []
        known = without_flags(parts) or {one_line(item["content"], TEXT_CHARS)}
        if (run and not parts) or known <= seen:
            continue
        seen |= known
        text = f"Ran `{_shown(parts)}`{run[2]}{_outcome(run[3])}" if run else item["content"]
        last = 0 if run and not any(map(_HISTORY.match, parts)) else 1 + bool(run)
        found.append((last, Line("ran", one_line(text, TEXT_CHARS), item["metadata"]["timestamp"])))
    return [line for _, line in sorted(found, key=lambda each: each[0])]


def _outcome(said: str | None) -> str:
    told = _ASIDE.sub("", said or "").strip()
    return f": {told}" if told else ""


def solutions(items: Iterable[Item], *, otherwise: bool = False) -> Iterator[Line]:
    """Yield the errors that were put right by something, with what did it; to run it again is no news.

    With `otherwise`, only those where another command did: that one is worth knowing.
    """
    held = (item for item in items if item["type"] == "solution" and not item["metadata"].get("protected"))
    for item, _ in zip(held, range(LOOKED_AT), strict=False):
        before, worked, after = item["content"].partition("\nWorked ")
        known, way = parse_failure(before), _REMEDY.fullmatch(after) if worked else None
        if known and known.parts and way:
            other = effective_parts(way[1]) if way[1] else []
            how = (
                [f"as `{_shown(other)}`"]
                if other and without_flags(other) != without_flags(known.parts)
                else []
            )
            how += [way[2]] if way[2] and not otherwise else []
            if how:
                text = f"{format_failure(known, TEXT_CHARS // 2)} -> worked {one_line(' '.join(how), TEXT_CHARS // 2)}"
                yield Line("solved", text, item["metadata"]["timestamp"])


# Two lines that share less of the longer one are about two things.
SHARED_AT = 0.5

_TOPIC_WORD = lazy(r"[^\W_][\w./:+#-]*[\w+#]|[^\W_]")
_NUMBER = lazy(r"\d+(?:[.,]\d+)*%?")


def topic_words(text: str) -> frozenset[str]:
    """Return the words of `text` that say what it is about, as they are written.

    >>> sorted(topic_words("Never use more than 4 workers"))
    ['more', 'never', 'use', 'worker']
    """
    found = _TOPIC_WORD.findall(text.casefold().replace("’", "'"))
    return frozenset(
        word.rstrip("s") if len(word) > 3 else word
        for word in found
        if word not in STOPWORDS and not _NUMBER.fullmatch(word)
    )


def without_repeats(lines: Iterable[Line], *, most: int, replacing: bool = False) -> list[Line]:
    """Return the first `most` of `lines`, newest first, without those that a newer one repeats.

    With `replacing`, an older line that cannot hold beside a newer one goes too, and the newer one says so.
    """
    kept: list[Line] = []
    topics: list[frozenset[str]] = []
    for line in lines:
        mine = topic_words(line.text)
        near = [at for at, other in enumerate(topics) if _near(mine, other)]
        if any(_repeats(line.text, kept[at].text) for at in near):
            continue
        against = (
            next((at for at in near if _contradicts(line.text, kept[at].text)), None) if replacing else None
        )
        if against is None:
            kept.append(line)
            topics.append(mine)
            if len(kept) == most:
                break
        elif not kept[against].note:
            said = (
                f"replaces what was said on {day_of(line.at)}" if line.at else "replaces what was said before"
            )
            kept[against] = kept[against]._replace(note=said)
    return kept


def _near(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= SHARED_AT * max(len(one), len(other))


def _repeats(one: str, other: str) -> bool:
    if one.casefold() == other.casefold():
        return True
    from aether.text.similarity import same  # its word lists cost a hook more than the rest of a briefing

    return same(one, other)


def _contradicts(one: str, other: str) -> bool:
    from aether.text.similarity import contradicts

    return contradicts(one, other)


# Looked through for each kind: far more than any budget holds, far less than a full memory.
LOOKED_AT_OPEN = 30
LOOKED_AT_COMMANDS = 100
# What is older has its share of the decisions and of the earlier work.
RECENT_SESSIONS = 3
# Of what a decision, request or result says, this many characters are told; of a summary, more.
SUMMARY_CHARS = 360
# A later result or solution that holds this share of a blocker's words is about it.
RESOLVED_SHARE = 0.5
# Fewer words are narration ("Now I see the pattern.").
LEAST_WORDS = 4
# "1" answers a question whose options are gone.
LEAST_ANSWER_WORDS = 2
# A reply that is longer says something.
REPLY_CHARS = 80
# A question or a remark of so few words ("Ok, ETA?") is about the moment; a task of so few names something.
CHAT_WORDS = 9
LEAST_RESULT_WORDS = 12
# What a session keeps beside its text: the last requests and results, as they would be told.
MOST_ASKED = 4
MOST_FOUND = 6
MOST_OPEN = 20
# What tells which commands failed, and which of them worked later.
SETTLING_TYPES = frozenset({"error", "command", "solution"})

_ENTRY_BREAK = lazy(r"[;\n]\s*(?=(?:Created|Changed|Deleted) \S|Ran `)")
_CODE = lazy(r"`[^`]*`")
# What comes next was done long ago when this is read.
_NEXT = lazy(
    r"\s*(?:(?:Now|So|First),? )?(?:let me|let's|I'll|I will|I need to)\b[^.!?]*[.:]?\s*\Z", re.IGNORECASE
)
_MARKUP = lazy(r"^#+ |^-{3,}$|^```\w*$|^\|[-:| ]+\|$", re.MULTILINE)
_DIALOGUE = lazy(r"Asked: (.*?)\s*Answered: (.*)", re.DOTALL)
_PLACEHOLDER = lazy(r"\[[^\]]*\]")
_TROUBLE = lazy(
    r"\b(?:fail\w*|errors?|cannot|can't|couldn't|unable|broken|breaks?|bugs?|missing|blocked|blocks?|wrong|crash\w*|"
    r"doesn't|don't work|not work\w*|stuck|denied|refused|unavailable|conflicts?|leaks?|hangs?|time[sd]? out|inconsistent)\b",
    re.IGNORECASE,
)
_WORD = lazy(r"[a-z']+")
# Words that spur on and say nothing of the work.
_ENCOURAGEMENT = frozenset(
    "a ahead all alright and apply approve approved but cheers continue cool correct do done exactly fine for go going good "
    "great ha hi hello hmm i i'm is it it's keep lgtm like looks lovely me my nah next nice no nope now ok okay on one perfect "
    "please proceed really right same so sorry sounds super sure thank thanks that that's the then this try very wait "
    "well with wonderful works would y yeah yep yes you".split()
)
_CHAT_START = lazy(
    r"(?:ok(?:ay)?|sorry|thanks?|hm+|wow|any|progress|status|eta|what|how|why|when|where|who|which|is|are|was|did|does|do you|"
    r"can (?:you|i|we)|could you|should|would|will|have you|really|oops|never mind|nevermind|i (?:see|think|guess|meant)|still)\b",
    re.IGNORECASE,
)
# A path, a name, a number or code: a remark that has one is about something.
_NAMES = lazy(r"[`/_#\d]|\w\.\w|[a-z][A-Z]|https?:")


def session_items(sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Item]:
    """Yield what the newest sessions kept word for word as the items that it was, without rules.

    The extractive architect writes several items of one type into one entry: files and commands are told apart again;
    of requests the last words are kept, which are the newest. Of results it keeps details, which tell nothing alone.
    What a session says of itself goes before that: files, requests, results, and the errors it left open.
    """
    for at, session in sessions[:RECENT_SESSIONS]:
        known = session.get("metadata") or {}
        for name, kind in _DETAIL_TYPES.items():
            by = SOURCE_WORKER if name == "found" else SOURCE_MAIN
            kept = known.get(name, [])
            yield from (_item(kind, text, at, by) for text in (kept if name == "open" else reversed(kept)))
        # A session of a hand-off says of itself what it left open: its other errors are history.
        told = {kind for name, kind in _DETAIL_TYPES.items() if known.get(name)} | {"outcome"}
        told |= {"error"} if "compression_id" in known else set()
        for entry in reversed(session.get("high_value_items") or []):
            kind = entry.get("type", "")
            if entry.get("injected") or kind in RULE_TYPES or kind in told:
                continue
            content = _tail(entry["content"]) if kind == "user_input" else entry["content"]
            yield from (_item(kind, part.strip(), at) for part in reversed(_ENTRY_BREAK.split(content)))


# The lists of a session's metadata, and what type of item they are made of.
_DETAIL_TYPES = {"files": "code_change", "open": "error", "asked": "user_input", "found": "outcome"}


def session_details(held: Sequence[Item]) -> dict[str, list[str]]:
    """Return what a session should say of itself of the items it stands for: requests, results, errors left open.

    Requests and results are the newest, in the order in which they were said.
    """
    newest = held[::-1]
    settles = [item for item in newest if item["type"] in SETTLING_TYPES]
    left = [line.text for line in open_problems(settles) if line.text.startswith("`")]
    results_ = [line.text for line in results(sorted(newest, key=lambda item: not noting_agent(item)))]
    requests = [shorten(item["content"], SUMMARY_CHARS) for item in _requests(newest)]
    return {
        "open": left[:MOST_OPEN],
        "asked": requests[:MOST_ASKED][::-1],
        "found": results_[:MOST_FOUND][::-1],
    }


def _item(type: str, content: str, at: str, source: str = SOURCE_MAIN) -> Item:
    metadata = {"timestamp": at, "caste": None, "source": source}
    return cast(Item, {"type": type, "content": content, "metadata": metadata})


def _tail(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else "..." + text[3 - TEXT_CHARS :].partition(" ")[2]


def of_type(items: Iterable[Item], type: str) -> Iterator[Item]:
    """Yield the newest items of one type."""
    found = (item for item in items if item["type"] == type and not item["metadata"].get("protected"))
    yield from (item for item, _ in zip(found, range(LOOKED_AT), strict=False))


def requests(items: Sequence[Item]) -> Iterator[Line]:
    """Yield what the person asked for, the last request whatever it is; before it, no talk of the moment."""
    for item in _requests(items):
        yield Line("asked", _answer(item["content"]), item["metadata"]["timestamp"])


def _requests(items: Iterable[Item]) -> Iterator[Item]:
    last = True
    for item in of_type(items, "user_input"):
        if not noting_agent(item) and _answer(item["content"]) and (last or not _is_chat(item["content"])):
            last = False
            yield item


def _answer(text: str) -> str:
    """Return what a person said, behind it the question where it answers one; "" where it says nothing."""
    dialogue = _DIALOGUE.fullmatch(text) if text.startswith("Asked: ") else None
    answer = one_line(dialogue[2] if dialogue else text, TEXT_CHARS).lstrip("-*• ")
    short = len(answer) <= REPLY_CHARS
    if short and (
        len(_PLACEHOLDER.sub("", answer).split()) < LEAST_ANSWER_WORDS or _is_encouragement(answer)
    ):
        return ""
    return f"{answer} (asked: {one_line(dialogue[1], TEXT_CHARS // 2)})" if dialogue else answer


def _is_encouragement(answer: str) -> bool:
    words = _WORD.findall(answer.casefold().replace("’", "'"))
    return bool(words) and not _NAMES.search(answer) and _ENCOURAGEMENT.issuperset(words)


def _is_chat(text: str) -> bool:
    """Return whether `text` is a question or remark about the moment in which it was said."""
    dialogue = _DIALOGUE.fullmatch(text) if text.startswith("Asked: ") else None
    bare = (dialogue[2] if dialogue else text).strip()
    if len(bare.split()) > CHAT_WORDS or _NAMES.search(bare):
        return False
    return bare.endswith("?") or _CHAT_START.match(bare) is not None


def decisions(items: Sequence[Item], sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    """Yield the decisions with their reasons."""
    for item in of_type(items, "decision"):
        text = _answer(item["content"])
        if len(text.split()) >= LEAST_WORDS:
            yield Line("decided", text, item["metadata"]["timestamp"])
    for at, session in sessions:
        for entry in session.get("key_decisions") or []:
            what, why = one_line(entry["decision"], TEXT_CHARS), one_line(entry["rationale"], TEXT_CHARS // 2)
            text = " - ".join(filter(None, (what, why)))
            if _PLACEHOLDER.sub("", what).strip() and len(text.split()) >= LEAST_WORDS:
                yield Line("decided", text, at)


def open_problems(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the errors that nothing put right and the blockers that nothing speaks of as solved.

    Of what failed while looking around, nothing is open.
    """
    ran: set[str] = set()
    ends: list[frozenset[str]] = []
    settling = looked = 0
    for item in items:
        kind, content = item["type"], item["content"]
        if kind in ("command", "solution") and settling < LOOKED_AT_COMMANDS:
            settling += 1
            ran |= commands_in(content)
        if kind in ("solution", "outcome") and len(ends) < LOOKED_AT:
            ends.append(topic_words(content[:SUMMARY_CHARS]))
        if kind not in ("error", "blocker") or item["metadata"].get("protected") or looked >= LOOKED_AT_OPEN:
            continue
        looked += 1
        text = _error(content, ran) if kind == "error" else _blocker(content, ends)
        if text:
            yield Line("open", text, item["metadata"]["timestamp"])


def _error(content: str, ran: set[str]) -> str:
    """Return an error as it is told, "" where all that failed has run since or was of no use."""
    known = parse_failure(content)
    if known is None:
        return one_line(content, TEXT_CHARS)
    return "" if without_flags(known.parts) <= ran else format_failure(known)


def _blocker(content: str, ends: Sequence[frozenset[str]]) -> str:
    mine = topic_words(content)
    over = not _TROUBLE.search(_CODE.sub("", content)) or any(
        len(mine & end) >= RESOLVED_SHARE * len(mine) for end in ends
    )
    return "" if over else one_line(content, TEXT_CHARS)


def results(items: Iterable[Item]) -> Iterator[Line]:
    """Yield the latest results; what an agent was sent to find out is one, however short."""
    for item in of_type(items, "outcome"):
        text = one_line(_NEXT.sub("", _MARKUP.sub(" ", item["content"])), SUMMARY_CHARS)
        if len(text.split()) >= (LEAST_WORDS if noting_agent(item) else LEAST_RESULT_WORDS):
            yield Line("stands", text, item["metadata"]["timestamp"])


def earlier_work(sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    """Yield what earlier sessions were about."""
    for at, session in sessions:
        yield Line("before", f"Phase {session['phase']}: {one_line(session['summary'], SUMMARY_CHARS)}", at)


def done_by_caste(items: Sequence[Item], caste: str) -> Iterator[Line]:
    """Yield what `caste` found, decided and solved last."""
    for item in items:
        if item["metadata"]["caste"] == caste and item["type"] in (
            "outcome",
            "decision",
            "solution",
            "blocker",
        ):
            yield Line("did", one_line(item["content"], SUMMARY_CHARS), item["metadata"]["timestamp"])
