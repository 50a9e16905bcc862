"""Tool calls: the calls of a conversation with their results, the files they touched and the failures among them.

Tools are recognised by their arguments, not by their names: a path with new text is an edit in every agent, and patches
and files written by the shell are edits too. Commands are read by `aether.messages.shell`. A result belongs to the
nearest earlier call of its id without a result. All of it is linear in the messages.

A failure is closed when a later run does all that the failed one did (with any flags), or when the same file is changed
after all. A search that finds nothing, and a slip of a tool's own protocol, are not failures.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from aether.hints import Literal, NotRequired
from aether.messages.model import Block, Message, as_text
from aether.messages.shell import (
    Part,
    command_signature,
    command_target,
    covers,
    error_excerpt,
    git_commands,
    git_step,
    is_empty_search,
    is_undecided,
    moved_to,
    only_reads,
    parts_of,
    place_of,
    reports_failure,
    segments,
    short_command,
    unquoted,
)
from aether.redact.redact import redact, without_blocks
from aether.regular import sha256
from aether.text.cleaning import clean, without_injected
from aether.text.regex import lazy
from aether.tuples import NamedTuple, TypedDict
from aether.types import JsonObject

Action = Literal["read", "changed", "created", "deleted"]
_COMMAND_KEYS = ("command", "cmd", "script")
# Between the words of the name of a tool.
CAMEL = lazy(r"(?<=[a-z0-9])(?=[A-Z])")
_SHELLS = frozenset({"bash", "sh", "zsh"})
# An editor tool that takes its verb as `command`; the file is named beside it.
_VERBS = frozenset({"view", "create", "str_replace", "insert", "undo_edit"})
_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "target_file", "filePath", "file")
_TEXT_KEYS = tuple(
    "content file_text new_string new_str newText new_source contents code_edit insert_text".split()
)
_OLD_KEYS = ("old_string", "old_str", "oldText")
_VIEWING = {"view", "read", "undo_edit"}
# Enough to recognise a change by; the file itself is the record of it.
_NAMES = 8
_TEXT_CHARS = 20_000
LINE_CHARS = 100

_PATCH_ACTIONS: dict[str, Action] = {"Add": "created", "Update": "changed", "Delete": "deleted"}
# Of Claude Code: a person answers its questions.
ASKING_TOOL = "AskUserQuestion"
# How Claude Code introduces a person's answers, and how it goes on after them.
_ANSWERED = lazy(
    r"\A(?:.{0,40}(?:questions have been answered|answered your questions)|The user (?:answered|(?P<freely>responded))(?=:)"
    r"|The user asked for more questions before (?:answering|you proceed\. So far they answered))(?::\s*)?",
    needs=("answered", "The user "),
)
_ANSWERS_END = (". You can now", ". Read the answers carefully", ". Call AskUserQuestion again")
_ALSO_WROTE = 'They also wrote: "'
_ANSWER_IS, _NEXT_ANSWER = '"="', ', "'
# Of the option that was chosen: the agent wrote it.
_PREVIEW = lazy(r" selected preview:\n.*?(?= notes: |\Z)", re.DOTALL, needs=(" selected preview:",))
_PATCHED = lazy(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_WRITTEN = lazy(r"(?:^|[;&|\n]\s*)(?:cat|tee)\b[^\n|;&]*?(?:>{1,2}\s*)?([\w./~@+-]+)\s*<<", needs=("<<",))
_CATTED = lazy(r"(?:^|[;&|\n]\s*)cat\s*>{1,2}\s*([\w./~@+-]+)", needs=(">",))
_IN_PLACE = lazy(
    r"\bsed\s+-i\S*\s+(?:''\s+)?(?:-e\s+)?(?:'[^']*'|\"[^\"]*\")((?:\s+[\w./~@+-]+)+)", needs=("sed",)
)
_DEFINED = lazy(
    r"^\+?\s*(?:(?:export|default|async|pub|public|private|protected|static|abstract|final|override)\s+)*"
    r"(?:def|func|function|class|type|interface|struct|enum|fn|trait|const)\s+(?:\([^)]{0,80}\)\s*)?([A-Za-z_]\w*)",
    re.MULTILINE,
)
HASH_DIGITS = 12
_WHOLE_KEYS = ("content", "file_text", "contents")
_PARTS = frozenset({"offset", "limit", "view_range", "start_line", "end_line", "pages"})
# Tools that look for files or list them name a folder, not a file that was read.
_READERS = lazy(r"read|view|open|cat|show|get_?file|fetch_?file", re.IGNORECASE)
_SEARCHERS = lazy(r"grep|glob|search|find|list|\bls\b|tree", re.IGNORECASE)
_NUMBERED = lazy(r"\s*1(?:→|\t|: |\|)")
_SHOWS = frozenset({"cat", "head", "tail", "less", "more", "nl", "bat"})
_PRINTS = lazy(r"sed\s+-n\s+\S+\s+(?P<path>[\w./~@+-]+)\s*$")
_REDIRECTED = lazy(r"(?<![0-9&>=-])>{1,2}\s*([\w./~@+-]*[\w~@+-])(?=\s|$)")
_LOOKS_LIKE_FILE = lazy(r"(?:[\w~.@+-]*/)*[\w~.@+-]*(?:\.\w+|[A-Z]\w+)")
_REBASES = lazy(r"\bgit (?:-\S+ \S+ )?rebase (?:-(?!-(?:abort|continue|skip|onto))\S+ )*([A-Za-z][\w./-]*)")
_REBASED = lazy(r"\bSuccessfully rebased and updated refs/heads/(\S+?)\.?$", re.MULTILINE, needs=("rebased",))
_EDITS_IN_PLACE = lazy(
    r"\b(?:g?sed|perl)(?: -\w+)* (?:-[a-zA-Z]*i\b|--in-place|-i\.)|\bperl -\w*i\b", needs=("sed", "perl")
)
_PROVES = lazy(
    r"(?:\b|_)(?:test|tests|pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|playwright|pre-commit|build|check|vet|lint|mypy|ruff|tsc|eslint|golangci-lint|make|compile|run)\b"
)
# Each prints the commit that it makes.
_MAKE_COMMITS = frozenset({"commit", "revert", "cherry-pick", "merge"})
_NEWEST_LOGGED = lazy(r"(?:commit )?([0-9a-f]{7,40})\b")
# A log of the branch that starts with its newest commit.
_PLAIN_LOG = lazy(
    r"""git log(?: (?:--oneline|--stat|--decorate|--no-decorate|-p|-n ?\d+|-\d+|--(?:format|pretty)=(?:oneline|short|medium|full|(["']?)(?:format:)?%[hH](?![a-zA-Z])[^"'|;&]*\1)))*(?: 2>&1)?"""
)
_MOVES = lazy(
    r"\b(?:cd|pushd|popd)\b|\bgh pr checkout\b|\bgit (?:bisect|worktree|symbolic-ref|update-ref)\b|\b(?:npm|pnpm|yarn|bun) version\b"
)
_SHOWN_ONLY = frozenset({"--dry-run", "--help", "-h"})
# Of a push that takes no commits along, and of what leaves the files as they are.
_NO_PUSH = frozenset({"-n", "-d", "--delete"}) | _SHOWN_ONLY
_KEPT_STASH = frozenset({"list", "show", "drop", "clear", "create", "store"})
_RESETS_FILES = frozenset({"--hard", "--merge", "--keep"})
_NEW_BRANCH = frozenset({"-b", "-B", "-c", "-C", "--create", "--orphan"})
_DROPPED = lazy(r".*(?:HEAD|@)[~^].*|\S+/\S.*|[0-9a-f]{7,40}")
# A push prints each branch by its name here and there; a fetch prints that of the remote.
_PUSHED = lazy(
    r"^ [ +*=-]? ?(?:[0-9a-f]{7,}\.{2,3}(?P<head>[0-9a-f]{7,})|\[new branch\])\s+(?:(?P<branch>\S+) -> (?P=branch)|HEAD -> \S+)(?=\s|\Z)|^Everything up-to-date",
    re.MULTILINE,
    needs=(" -> ", "up-to-date"),
)
_NOTHING_MOVED = lazy(r"\bup[ -]to[ -]date\b|^Fast-forward$", re.MULTILINE)
# With a commit of its own.
_MERGED = lazy(r"^Merge made by the '", re.MULTILINE)
_NOT_PUSHED = lazy(
    r"^ ! \[(?:remote )?rejected\]|^error: failed to push|^fatal: |^hint: .*\b(?:fast-forwards|integrate)\b|^\s*git push --set-upstream\b",
    re.MULTILINE,
    needs=("rejected", "error: ", "fatal: ", "hint: ", "--set-upstream"),
)
# The whole list of changed files: not filtered, and not that of some paths.
_LISTS_CHANGES = lazy(r"git(?: -C (\S+))? status(?: (?:-s|-b|-sb|--short|--branch|--porcelain|--long))*")
_ONLY_LISTS = lazy(r"git(?: -C \S+)? status(?: \S+)*")
_LISTED_CHANGE = lazy(
    r"^(?:[ MADRCU?]{2}(?<!  ) |\t(?:modified|new file|deleted|renamed|both modified|typechange):\s+|\t)(?:.+ -> )?(\S.*?)\s*$",
    re.MULTILINE,
)
# The lines of a short list, before those that another command printed.
_SHORT_LIST = lazy(r"(?:(?:##|[ MADRCU?]{2}(?<!  )) .*\n?)*")
# The branch of the work, as git prints it; that of another directory is not this one.
_SHOWS_BRANCH = lazy(r"\bgit (?:commit|status|checkout|switch|branch --show-current)\b", needs=("git",))
_BRANCH = lazy(
    r"^\[(?!detached )([^\]\s]+)(?: \(root-commit\))? [0-9a-f]{7,}\] |^On branch (\S+)$|^## (?!HEAD )(\S+?)(?:\.\.\.\S+)?(?: \[.*\])?$"
    r"|^Switched to (?:a new )?branch '([^'\n]+)'$",
    re.MULTILINE,
    needs=("] ", "On branch ", "## ", "Switched to "),
)
_COMMIT_NAME = lazy(r"^\[[^\]\n]+ ([0-9a-f]{7,})\] (.*)$", re.MULTILINE)
_COMMIT_ENTRY = lazy(r"(?:(?P<name>[0-9a-f]{7,40}) )?(?P<subject>.*)", re.DOTALL)
_LOGGED_COMMIT = lazy(r"^(?=[a-f]*\d)([0-9a-f]{7,40}) (?:\((?:HEAD|tag:)[^)\n]*\) )?(\S.*)$", re.MULTILINE)
# What a commit says, or the title and the text of a pull request, on the command line.
_MESSAGE = lazy(
    r"""\s(?:-[a-z]*m|--message|--title|-t|--body|-b)[ =]("(?:\\.|[^"\\])*"|'[^']*')""", re.DOTALL
)
_TRAILERS = lazy(r"\n+(?:(?:[A-Z][\w-]+-[Bb]y|[A-Z][\w]+(?:-[A-Z]\w+)+): .*|\W*Generated with .*)(?=\n|\Z)")
# What is staged by each of these is in the next commit.
_STAGING = frozenset({"add", "stage", "rm", "mv"})
_STAGES_UNSEEN = lazy(r"\bxargs\b[^|;&]*\bgit\b[^|;&]* (?:add|stage|rm)\b", needs=("xargs",))
# Where files are made that belong to no work tree, unless the work itself is there.
_SCRATCH = ("/tmp/", "/var/tmp/", "/private/tmp/", "/private/var/folders/", "/var/folders/")  # noqa: S108 - nothing is written there
# Where Claude Code keeps the plans of a session, beside no project.
_ASIDE = lazy(
    r"/\.claude/plans/|/\.git/|/scratch(?:pad)?/", re.IGNORECASE, needs=("/.claude", "/.git", "/scratch")
)
# What an editor answers that wrote a file over another one.
_OVERWRITTEN = lazy(
    r"\bhas been (?:updated|overwritten)\b|\boverwr(?:ote|itten)\b", needs=("has been", "overwr")
)
_ANSWER_CHARS = 600
_WRITES = lazy(r"(?<![0-9&>=<-])>{1,2}\s*(?!/dev/|&)[^\s&]", needs=(">",))
_CHECKS = lazy(
    r"(?:^|\s)(?:tests?|pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|check|vet|lint|mypy|tsc|eslint)(?=[\s:]|\Z)"
)
_CORRECTS = lazy(r" -(?:-?(?:fix|write|update\w*|apply|snapshot\w*|exec|delete)|[iuw])\b", needs=(" -",))
_FORMATS_OR_BUILDS = lazy(r"(?:^|\s)(?:\w*fmt|format|prettier|black|isort|build|echo|jq)(?=[\s:]|\Z)")
# What separates a target from the directory that it is in.
_IN = "\n"
# Options of a commit with a value: the long ones, and the last of some letters.
_VALUED = frozenset(
    "--message --file --author --date --template --fixup --squash --reuse-message --reedit-message --cleanup --trailer".split()
)
_COMMIT_FLAGS = lazy(r"-([^mFCctSu]*)([mFCct]?)(.*)", re.DOTALL)
_NO_COMMIT = lazy(
    r"^(?:nothing (?:added )?to commit\b|no changes added to commit\b|Author identity unknown|error: |fatal: |\W*husky - .*\bexited with code [1-9]|.*\bhook failed\b|.*\.{3,}Failed$)"
    r"|\bgpg failed to sign\b|\bCommitting is not possible\b",
    re.MULTILINE,
)
MOST_EDITED = 60
SHORT_NAME = 7
MOST_NAMED = 12
MOST_COMMITS = 12
SUBJECT_CHARS = 90
UNCHECKED = "No build or test is known to have passed since the last edit."
COMMITS_LEAD = "Commits, the newest first: "
# Enough to recognise an error by; the full text is in the archive.
COMPLAINT_CHARS = 300
SHELL = "$ "
_ABOUT_KEYS = ("file_path", "path", "notebook_path", "url")
# A script of Codex that calls tools: `const r = await tools.exec_command({cmd: "make test"}); text(r.output)`.
_SCRIPT = lazy(r"\btools\.(?:exec_command|apply_patch)\(", needs=("tools.",))
# One without an end goes as far as it can, so that it is not read again and again.
_STRING = r"""(?:"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?|`(?:\\.|\$(?!\{)|[^`\\$])*+`?)"""
_ESCAPE = lazy(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_REMARK = lazy(r"^[ \t]*//[^\n]*$", re.MULTILINE, needs=("//",))
_WRITTEN_OUT = rf"(?:String\.raw)?{_STRING}"
_LITERAL = lazy(_WRITTEN_OUT)
_SCRIPT_COMMAND = lazy(
    rf"""\btools\.exec_command\(\s*\{{(?:[^{{}}"'`]|{_STRING})*?["']?\bcmd["']?\s*:\s*({_WRITTEN_OUT})"""
)
_SCRIPT_PLACE = lazy(rf"""\bworkdir["']?\s*:\s*({_WRITTEN_OUT})""")
# Slips of a tool's own protocol, corrected in the next call; nobody needs to know of them later.
_SLIP = lazy(
    r"\s*(?:Exit code \d+\s+(?=\[Request interrupted))?(?:<tool_use_error>|File has (?:not been read|been modified)|String to replace not found|Found \d+ matches of the string|"
    r"No changes to make|InputValidationError|Argument Validation Error|Sibling tool call|\[Request interrupted|Cancelled|"
    r"The user doesn't want to|Claude requested permissions|Permission to use|Your proposed edit has introduced new syntax)"
)

_REFUSED = lazy(
    r"The user doesn't want to (?:proceed|take this action)|user rejected|tool use was rejected|but you haven't granted it",
    needs=("doesn't want to", "rejected", "haven't granted"),
)
_REFUSAL_REASON = lazy(r"the user said:\s*(.+)", re.DOTALL)
# A refusal opens with its own words.
_REFUSAL_CHARS = 160


class Call(NamedTuple):
    """A call and its result."""

    at: int
    tool: str
    arguments: JsonObject
    command: str
    """The shell command that it runs; empty for other tools."""
    result: Block | None


def calls_of(messages: Sequence[Message]) -> list[Call]:
    """Return the calls in `messages` in order."""
    found: list[Call] = []
    waiting: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        for block in message.blocks:
            if block.kind == "call":
                waiting.setdefault(block.call_id, []).append(len(found))
                found.append(Call(at, block.tool, block.arguments, shell_command(block.arguments), None))
            elif block.kind == "result" and waiting.get(block.call_id):
                place = waiting[block.call_id].pop()
                found[place] = found[place]._replace(result=block)
    return found


def shell_command(arguments: JsonObject) -> str:
    """Return the shell command in the arguments of a call; empty without one.

    >>> shell_command({"command": ["bash", "-lc", "make test"]}), shell_command({"command": "view", "path": "a.py"})
    ('make test', '')
    """
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            value = value[-1] if value[0].rpartition("/")[2] in _SHELLS else " ".join(value)
        if isinstance(value, str) and value.strip():
            return "" if value in _VERBS else value.strip()
    return "; ".join(map(_literal, _SCRIPT_COMMAND.findall(script_in(arguments))))


def script_in(arguments: JsonObject) -> str:
    """Return the script that calls tools in the arguments of a call, as newer Codex writes one; empty without one."""
    text = arguments.get("input")
    return _REMARK.sub("", text) if isinstance(text, str) and _SCRIPT.search(text) else ""


def _literal(written: str) -> str:
    r"""Return the text of a string literal of JavaScript, "" if it has no end.

    >>> _literal('"a\\tb"'), _literal(r"String.raw`a\d`"), _literal(r"`it\'s \${A}`"), _literal('"a')
    ('a\tb', 'a\\d', "it's ${A}", '')
    """
    bare = written.removeprefix("String.raw")
    if len(bare) < 2 or bare[-1] != bare[0]:
        return ""
    if bare != written:
        return bare[1:-1]
    # Two escapes may be the halves of one character; a half alone is not valid.
    return _ESCAPE.sub(_unescaped, bare[1:-1]).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])


class FileChange(NamedTuple):
    """A file that a call changed; `action` is `created`, `changed` or `deleted`."""

    path: str
    action: Action
    lines: int = 0
    names: tuple[str, ...] = ()
    """Functions and classes that the new text defines."""
    first: str = ""
    """The first new line, if the text defines nothing."""
    swap: str = ""
    """Digests of the text that was replaced and of the new one, where a single edit says both."""


def file_changes(arguments: JsonObject, command: str = "") -> Iterator[FileChange]:
    """Yield the files that a call with these arguments changes.

    >>> [change.path for change in file_changes({"file_path": "a.py", "old_string": "x", "new_string": "def y(): ..."})]
    ['a.py']
    """
    texts = (arguments.get(key) for key in ("input", "patch"))
    patch = next((text for text in texts if isinstance(text, str)), command)
    if script := script_in(arguments):
        yield from _by_shell(command)
        literals = map(_literal, _LITERAL.findall(script))
        yield from _by_patch("\n".join(one for one in literals if "*** Begin Patch" in one))
    elif "*** Begin Patch" in patch:
        yield from _by_patch(patch)
    elif command:
        yield from _by_shell(command)
    else:
        yield from _by_tool(arguments)


def _by_patch(patch: str) -> Iterator[FileChange]:
    heads = list(_PATCHED.finditer(patch))
    ends = [*(head.start() for head in heads[1:]), len(patch)]
    for head, end in zip(heads, ends, strict=False):
        lines = patch[head.end() : end].partition("*** End Patch")[0].split("\n")
        added, removed = ("\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "+-")
        yield _described(head[2], _PATCH_ACTIONS[head[1]], added, removed)


def _by_tool(arguments: JsonObject) -> Iterator[FileChange]:
    path = next(filter(None, (as_text(arguments.get(key)) for key in _PATH_KEYS)), None)
    if path is None or as_text(arguments.get("command")) in _VIEWING:
        return
    edits = arguments.get("edits")
    listed = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else [arguments]
    new = [edit[key] for edit in listed for key in _TEXT_KEYS if isinstance(edit.get(key), str)]
    old = [edit[key] for edit in listed for key in _OLD_KEYS if isinstance(edit.get(key), str)]
    if not new:
        return
    whole = not old and any(key in arguments for key in _WHOLE_KEYS)
    change = _described(path, "created" if whole else "changed", "\n".join(new), "\n".join(old))
    # An edit of every place, or of one that only its context names, may be undone in part.
    once = len(new) == len(old) == 1 and not arguments.get("replace_all")
    yield change._replace(swap=f"{short_hash(old[0])} {short_hash(new[0])}") if once else change


def _by_shell(command: str) -> Iterator[FileChange]:
    place: str | None = ""
    for part in parts_of(command) if "cd " in command else ():
        place = moved_to(place, part)
        if not part.text.startswith("cd "):
            break
    for change in _written_by(command):
        if change.path.startswith(("/", "~")):
            yield change
        elif place is not None:  # where the directory is not known, the file is not either
            yield change._replace(path=posixpath.join(place, change.path))


def _written_by(command: str) -> Iterator[FileChange]:
    read = command[:_TEXT_CHARS]
    written = [found[1] for pattern in (_WRITTEN, _CATTED) for found in pattern.finditer(read)]
    for path in dict.fromkeys(written):
        text = read.partition("\n")[2] if len(written) == 1 else ""
        yield _described(path, "changed" if ">>" in read else "created", text, "")
    for found in _IN_PLACE.finditer(read):
        yield from (FileChange(path, "changed") for path in found[1].split() if path != "+")
    for part in parts_of(read):
        given = part.text.split()
        program, *rest = (given[1:] if given[:1] == ["git"] else given) or [""]
        named = [] if {"--cached", "--dry-run"} & {*rest} else _named(rest)
        if program == "rm":
            yield from (FileChange(path, "deleted") for path in named if _LOOKS_LIKE_FILE.fullmatch(path))
        elif program in ("mv", "cp") and len(named) == 2 and all(map(_LOOKS_LIKE_FILE.fullmatch, named)):
            if program == "mv":
                yield FileChange(named[0], "deleted")
            yield FileChange(named[1], "created")


def as_answered(change: FileChange, answer: str) -> FileChange:
    """Return `change` as the answer to its call shows it: a file that was written whole may have been there before.

    >>> as_answered(FileChange("a.py", "created", 3), "The file a.py has been updated successfully.").action
    'changed'
    """
    over = change.action == "created" and _OVERWRITTEN.search(answer[:_ANSWER_CHARS])
    return change._replace(action="changed") if over else change


def _named(given: Iterable[str]) -> list[str]:
    return [each.strip("'\"") for each in given if not each.startswith("-")]


def _described(path: str, action: Action, new: str, old: str) -> FileChange:
    new, old = without_blocks(new)[:_TEXT_CHARS], old[:_TEXT_CHARS]
    known = set(_DEFINED.findall(old))
    names = tuple(dict.fromkeys(name for name in _DEFINED.findall(new) if name not in known))[:_NAMES]
    lines = new.count("\n") + 1 if new else 0
    before = {line.strip() for line in old.split("\n")}
    bares = [] if names else map(str.strip, new.split("\n"))
    first = redact(next((bare for bare in bares if len(bare) > 3 and bare not in before), ""))
    # Cut after it is redacted: half a secret does not look like one.
    first = first if len(first) <= LINE_CHARS else first[: LINE_CHARS - 1] + "…"
    return FileChange(path, action, lines, names, first)


class FileFact(NamedTuple):
    """A file that the work touched."""

    path: str
    action: Action
    times: int
    sha256: str = ""
    """First 12 hex digits of the hash of the content last read or written, if the messages have it whole."""


class ErrorFact(NamedTuple):
    """A failed call."""

    text: str
    open: bool


def files_of(calls: Iterable[Call]) -> tuple[FileFact, ...]:
    """Return the files that `calls` touched, the last touched at the end.

    A file that was changed is not listed as read.
    """
    found: dict[str, FileFact] = {}
    for call in calls:
        if call.result is not None and not call.result.is_error:
            for fact in _touched(call):
                _count(found, fact)
    return _each_once(found)


def _each_once(found: dict[str, FileFact]) -> tuple[FileFact, ...]:
    """Return `found` with each relative path that ends exactly one absolute one joined to that."""
    absolute = [path for path in found if path.startswith("/")]
    for path in [one for one in found if absolute and one.strip("./") and not one.startswith(("/", "~"))]:
        whole = [one for one in absolute if one.endswith(f"/{path.removeprefix('./')}")]
        if len(whole) == 1 and whole[0] in found:
            fact = found.pop(path)
            _count(found, fact._replace(path=whole[0]))
    return tuple(found.values())


def merged_files(older: Iterable[FileFact], newer: Iterable[FileFact]) -> tuple[FileFact, ...]:
    """Return one entry for each path, counts added, the newest at the end.

    >>> merged_files([FileFact("a", "created", 1, "0f")], [FileFact("b", "read", 1), FileFact("a", "changed", 2)])
    (FileFact(path='b', action='read', times=1, sha256=''), FileFact(path='a', action='created', times=3, sha256=''))
    """
    found = {fact.path: fact for fact in older}
    for fact in newer:
        _count(found, fact)
    return _each_once(found)


def _count(found: dict[str, FileFact], fact: FileFact) -> None:
    before = found.get(fact.path)
    if before is None:
        found[fact.path] = fact
    elif fact.action == "read" and before.action != "read":
        # Reading changes nothing; whole contents that were read again are the present ones.
        found[fact.path] = before._replace(sha256=fact.sha256 or before.sha256)
    else:
        found.pop(fact.path)
        times = before.times if before.action != "read" or fact.action == "read" else 0
        action = fact.action
        if before.action == "created" and action == "changed":
            action = "created"  # in all it was created
        elif before.action in {"read", "changed"} and action == "created":
            action = "changed"
        found[fact.path] = fact._replace(action=action, times=times + fact.times)


def _touched(call: Call) -> Iterator[FileFact]:
    changed = False
    texts = [call.arguments[key] for key in _WHOLE_KEYS if isinstance(call.arguments.get(key), str)]
    whole = short_hash(texts[0]) if texts and not call.command else ""
    answer = call.result.text if call.result else ""
    for found in file_changes(call.arguments, call.command):
        changed = True
        change = as_answered(found, answer)
        yield FileFact(change.path, change.action, 1, whole)
    if call.command:
        for part in segments(call.command):
            yield from (FileFact(path, "read", 1) for path in _shown(part))
            # Output in a file is a fact of the work, but no change that memory would note.
            written = None if part.split()[:1] == ["cat"] else _REDIRECTED.search(part)
            if written and written[1] != "/dev/null":
                yield FileFact(written[1], "changed" if ">>" in part else "created", 1)
    elif not changed:
        given = call.arguments
        path = next(filter(None, (as_text(given.get(key)) for key in _PATH_KEYS)), "")
        reads = _READERS.search(call.tool) and not _SEARCHERS.search(call.tool)
        if path and (reads or given.get("command") == "view") and not path.endswith("/"):
            in_full = answer and not _PARTS & given.keys() and not _NUMBERED.match(answer)
            yield FileFact(path, "read", 1, short_hash(answer) if in_full else "")


def short_hash(text: str) -> str:
    """Return the first digits of the SHA-256 of `text`, as `sha256sum` prints them for a file of it."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def _shown(part: str) -> list[str]:
    """Return the files that one command of a line prints."""
    given = part.split()
    if given[:1] == ["sed"] and (printed := _PRINTS.search(part)):
        return [printed["path"]]
    if given and given[0] in _SHOWS and ">" not in part:
        return [path for path in _named(given[1:]) if _LOOKS_LIKE_FILE.fullmatch(path)]
    return []


def failures_of(
    calls: Iterable[Call], *, removed: Callable[[int], bool], before: Iterable[ErrorFact] = ()
) -> tuple[ErrorFact, ...]:
    """Return the failures among the calls at `removed` positions, and those of `before` that are closed by now.

    All `calls` can close a failure, also those that stay.
    """
    known = {_key(error.text): error for error in before if error.open}
    found: dict[str, ErrorFact] = {}
    for call in calls:
        if call.result is None:
            continue
        label = _label(call)
        key = failure_key(f"{SHELL}{call.command}" if call.command else label)
        if not _failed(call):
            if call.command and is_undecided(call.command, call.result.text):
                continue
            for failed, error in [*known.items(), *found.items()]:
                if resolves(key, failed):
                    found[failed] = found.get(failed, error)._replace(open=False)
        elif removed(call.at) and not is_harmless(call.command, call.result.text):
            found.pop(key, None)
            text = error_excerpt(without_injected(call.result.text))
            text = text if len(text) <= COMPLAINT_CHARS else text[: COMPLAINT_CHARS - 1] + "…"
            found[key] = ErrorFact(f"{label}\n{text}".rstrip("\n"), open=True)
    return tuple(found.values())


def merged_failures(older: Iterable[ErrorFact], newer: Iterable[ErrorFact]) -> tuple[ErrorFact, ...]:
    r"""Return one entry for each failure in its present state, the newest at the end.

    >>> merged_failures([ErrorFact("$ make\nno rule", open=True)], [ErrorFact("$ make -j2\nno rule", open=False)])
    (ErrorFact(text='$ make -j2\nno rule', open=False),)
    """
    found: dict[str, ErrorFact] = {}
    for error in (*older, *newer):
        key = _key(error.text)
        for failed in [each for each in found if each == key or (not error.open and resolves(key, each))]:
            del found[failed]
        found[key] = error
    return tuple(found.values())


class WorkTree(TypedDict):
    """What the calls of a conversation show of its files under version control."""

    edited: list[str]
    """The files edited since the last commit; only their names in a state of an earlier release."""
    made: NotRequired[list[str]]
    """Those of them that a call created: deleted again, they leave nothing."""
    swaps: NotRequired[dict[str, list[str]]]
    """The digests of the old and the new text of their edits, the newest last; "" where they are not known."""
    stashed: NotRequired[list[str]]
    """Those that are in a stash."""
    commit: str
    """The name of the last commit, as git printed it."""
    committed: bool
    pushed: bool
    """Whether there was any push."""
    ahead: bool
    """Whether a commit came after the last push."""
    unchecked: bool
    """Whether nothing was built or tested since the last edit."""
    commits: NotRequired[list[str]]
    """Name and subject of the commits made, the newest last; of those that a rebase rewrote, the subject."""
    refused: NotRequired[list[str]]
    """The files whose last edit a person refused."""
    withheld: NotRequired[str]
    """What a person refused last and was not made since: a commit or push."""
    branch: NotRequired[str]
    """The branch, as git printed it last."""
    rewritten: NotRequired[bool]
    """Whether a rebase that had stopped made commits."""
    rebased: NotRequired[str]
    """What the branch was rebased on last."""
    staged: NotRequired[list[str]]
    """The files staged for the next commit; absent if that is unknown."""
    in_place: NotRequired[bool]
    """Whether a command edited files without naming each, since the last commit."""
    untouched: NotRequired[bool]
    """Whether no call can have changed a file; absent once one can."""
    clean: NotRequired[bool]
    """Whether git listed no changed file where some had been edited."""
    head: NotRequired[str]
    """The newest commit that a log showed, since the last command that may have moved it."""
    outside: NotRequired[str]
    """The newest commit, if it was made outside of the conversation."""


def new_work_tree() -> WorkTree:
    """Return the files of a conversation before its first call."""
    return WorkTree(
        edited=[], commit="", committed=False, pushed=False, ahead=False, unchecked=False, untouched=True
    )


def swaps_of(changes: Iterable[FileChange]) -> dict[str, str]:
    """Return the digests of the old and the new text by path, of the files that `changes` edit once."""
    found: dict[str, list[str]] = {}
    for change in changes:
        found.setdefault(change.path, []).append(change.swap)
    return {path: swaps[0] for path, swaps in found.items() if len(swaps) == 1 and swaps[0]}


def takes_edit_back(tree: WorkTree, path: str, swap: str) -> bool:
    """Return whether an edit of `path` with the digests `swap` undoes the last one since the last commit."""
    known = tree.get("swaps", {}).get(path) or [""]
    return bool(swap) and path in tree["edited"] and known[-1] == " ".join(reversed(swap.split(" ")))


def record_in_work_tree(
    tree: WorkTree,
    changes: Mapping[str, str],
    command: str,
    output: str,
    *,
    swaps: Mapping[str, str] | None = None,
    failed: bool = False,
    directory: str = "",
    place: str = "",
) -> bool:
    """Record a call by what it did to which files, its command and output; return whether it said anything new.

    One that `failed` may have committed or pushed before, as its output says, and a check that failed was a check.
    Temporary files belong to the work only if its `directory` is a temporary one. `place` is where the command ran, if
    the call names a directory.
    """
    before = dict(tree)
    if "untouched" in tree and ((changes and not failed) or (command and _may_write(command))):
        del tree["untouched"]
    steps = _git_steps(command)
    if failed:
        tree.pop("staged", None)  # which part of the command failed is unknown
        if commits_in(command, output):
            _record_commits(tree, command, output, steps)
        elif _proves(command, output):
            tree["unchecked"] = False
        _record_push(tree, steps, command, output, failed=True)
        return tree != before
    scratch = _SCRATCH if not directory.startswith(_SCRATCH) else ()
    _record_edits(
        tree,
        {
            path: action
            for path, action in changes.items()
            if not path.startswith(scratch) and not _ASIDE.search(f"/{path}")
        },
        swaps or {},
    )
    _record_commits(tree, command, output, steps)
    if "-" in command and _EDITS_IN_PLACE.search(unquoted(command)):
        tree["in_place"] = tree["unchecked"] = True
    _record_branch(tree, command, output)
    taken_back = _without_stashed(tree, [step for _, step in steps if _takes_back(*step)])
    if taken_back:
        named = [word for _, words in taken_back for word in words if not word.startswith("-")]
        # Which of the edits are left is known only if all are named as they were edited.
        files = [path for path in tree["edited"] if any(_is_same(path, word) for word in named)]
        sure = (
            len(taken_back) == 1
            and taken_back[0][0] in ("checkout", "restore")
            and len(files) == len(named) > 0
        )
        tree["edited"] = [path for path in tree["edited"] if path not in files] if sure else []
        tree.pop("in_place", None)
        tree.pop("staged", None)
    elif not any(_commits(*step) for _, step in steps) and _proves(command, output):
        tree["unchecked"] = False
    _record_listing(tree, command, output, place)
    _record_head(tree, command, output, place)
    _record_push(tree, steps, command, output, failed=False)
    if swaps_left := tree.get("swaps"):
        tree["swaps"] = {path: held for path, held in swaps_left.items() if held and path in tree["edited"]}
    return tree != before


_Commands = list[tuple[str, list[str]]]
# A command of git with its place in the line, counted from the end.
_Steps = tuple[tuple[int, tuple[str, list[str]]], ...]


@lru_cache(maxsize=64)  # several questions are asked about one command
def _git_steps(command: str) -> _Steps:
    parts = parts_of(command) if "git" in command else ()
    return tuple((at - len(parts), step) for at, part in enumerate(parts) if (step := git_step(part)))


def _commits(verb: str, words: Sequence[str]) -> bool:
    return verb == "commit" and _SHOWN_ONLY.isdisjoint(words)


def _pushes(verb: str, words: Sequence[str]) -> bool:
    """Return whether a command of git pushes commits, and does not only delete a branch or push tags."""
    if verb != "push" or not _NO_PUSH.isdisjoint(words):
        return False
    refs = [word for word in words if not word.startswith("-")][1:]
    return not all(ref.startswith(":") for ref in refs) if refs else "--tags" not in words


def _without_stashed(tree: WorkTree, taken_back: _Commands) -> _Commands:
    """Return the commands `taken_back` without those that stash edits and get them back; what is stashed for longer is recorded."""
    stashed = [step for step in taken_back if step[0] == "stash"]
    if not stashed:
        return taken_back
    gets_back = stashed[-1][1][:1] in (["pop"], ["apply"])
    if gets_back and (len(stashed) > 1 or "stashed" in tree):
        tree["edited"] = [*dict.fromkeys([*tree.pop("stashed", []), *tree["edited"]])][-MOST_EDITED:]
        return [step for step in taken_back if step[0] != "stash"]
    if not gets_back and tree["edited"]:
        # Of two stashes the first is no longer known.
        tree["stashed"] = [] if "stashed" in tree else tree["edited"]
    return taken_back


def _takes_back(verb: str, words: Sequence[str]) -> bool:
    """Return whether a command of git can undo edits."""
    if verb == "restore":
        return {"--staged", "-S"}.isdisjoint(words) or not {"--worktree", "-W"}.isdisjoint(words)
    if verb == "stash":
        return not words or words[0] not in _KEPT_STASH
    if verb == "reset":
        return not _RESETS_FILES.isdisjoint(words) or _drops_commits(verb, words)
    if verb == "clean":
        return {"-n", "--dry-run"}.isdisjoint(words)
    return verb == "checkout" and _NEW_BRANCH.isdisjoint(words)


def _drops_commits(verb: str, words: Sequence[str]) -> bool:
    return verb == "reset" and any(map(_DROPPED.fullmatch, words))


def _proves(command: str, output: str) -> bool:
    """Return whether `command` builds or tests, and its answer says how that came out."""
    proves = any(
        _PROVES.search(command_signature(part.text)) and not only_reads(part.text)
        for part in (parts_of(command) if command else ())
    )
    return proves and not is_undecided(command, output)


def _may_write(command: str) -> bool:
    """Return whether a command can have changed a file; a check that corrects nothing cannot."""
    return bool(_WRITES.search(unquoted(command))) or any(
        _CORRECTS.search(part.text)
        or not (only_reads(part.text) or _CHECKS.search(command_signature(part.text)))
        for part in parts_of(command)
    )


def _record_push(tree: WorkTree, steps: _Steps, command: str, output: str, *, failed: bool) -> None:
    """Record whether the commits were pushed, as the output says; of a call that did not fail if it does not deny it."""
    pushes = [at for at, step in steps if _pushes(*step)]
    if not pushes:
        return
    failed = failed or is_undecided(command, output)
    shown = max((found.start() for found in _PUSHED.finditer(output)), default=-1)
    refused = max((found.start() for found in _NOT_PUSHED.finditer(output)), default=-1)
    if refused > shown or (failed and shown < 0 and pushes[-1] == -1):
        return
    tree["pushed"] = True
    tree.pop("withheld", None)
    if failed and shown < 0:
        tree["ahead"], tree["commit"] = False, ""  # unknown
    elif not any(at > pushes[-1] and _commits(*step) for at, step in steps):
        tree["ahead"] = False
        if not commits_in(command, output):
            _record_pushed_head(tree, output)


def _record_pushed_head(tree: WorkTree, output: str) -> None:
    """Record the name of the newest commit as a push shows it: of a merge git prints none."""
    own = (tree.get("branch"), None)  # without a name where HEAD was pushed
    heads = [one["head"] for one in _PUSHED.finditer(output) if one["head"] and one["branch"] in own]
    newest = _COMMIT_ENTRY.fullmatch((tree.get("commits") or [""])[-1])
    if len(heads) != 1 or not tree["committed"] or heads[0].startswith(tree["commit"] or " "):
        return
    tree["commit"] = heads[0]
    if newest and newest["subject"].startswith("Merge") and not newest["name"]:
        tree["commits"][-1] = f"{heads[0]} {newest['subject']}"


def is_prose(path: str) -> bool:
    """Return whether the file at `path` is one that no build and no test reads.

    >>> is_prose("docs/README.MD"), is_prose("src/readme.py")
    (True, False)
    """
    return path.lower().endswith((".md", ".markdown", ".rst", ".adoc"))


def _record_edits(tree: WorkTree, changes: Mapping[str, str], swaps: Mapping[str, str]) -> None:
    for path, action in changes.items():
        tree.pop("clean", None)
        if _record_swap(tree, path, swaps.get(path, "")):
            tree["edited"] = _others(tree["edited"], path)
            tree["unchecked"] = tree["unchecked"] or not is_prose(path)
            continue
        others, made = _others(tree["edited"], path), _others(tree.get("made", ()), path)
        if action == "created" and len(others) == len(tree["edited"]):
            tree["made"] = [*made, path][-MOST_EDITED:]
        elif action == "deleted" and len(made) < len(tree.get("made", ())):
            tree["edited"], tree["made"] = others, made
            continue
        tree["edited"] = [*others, path][-MOST_EDITED:]
        tree["unchecked"] = tree["unchecked"] or not is_prose(path)
        if "staged" in tree:
            tree["staged"] = _others(tree["staged"], path)
        if "refused" in tree:
            tree["refused"] = _others(tree["refused"], path)


def _record_swap(tree: WorkTree, path: str, swap: str) -> bool:
    """Record an edit of `path`; return whether it undoes the only one since the last commit."""
    # Of an edit that is not known nobody knows whether another one undoes it.
    held = tree.get("swaps", {}).get(path) or ([""] if path in tree["edited"] else [])
    taken_back = takes_edit_back(tree, path, swap)
    held = held[:-1] if taken_back else [*held, swap]
    tree.setdefault("swaps", {})[path] = held if len(held) <= MOST_NAMED else ["", *held[1 - MOST_NAMED :]]
    return taken_back and not held


def _others(paths: Iterable[str], path: str) -> list[str]:
    return [one for one in paths if not _is_same(one, path)]


def _is_same(one: str, other: str) -> bool:
    """Return whether two paths can be of one file: one of them may be relative to any directory above it."""
    one, other = f"/{one.removeprefix('./')}", f"/{other.removeprefix('./')}"
    return one.endswith(other) or other.endswith(one)


def file_names(paths: Sequence[str]) -> list[str]:
    """Return the names of files, with their directory where two have the same name.

    >>> file_names(["/p/a/x.py", "/p/b/x.py", "/p/b/y.py"])
    ['a/x.py', 'b/x.py', 'y.py']
    """
    names = [path.rpartition("/")[2] for path in paths]
    return [
        name if names.count(name) == 1 else "/".join(path.split("/")[-2:])
        for name, path in zip(names, paths, strict=True)
    ]


def _record_listing(tree: WorkTree, command: str, output: str, place: str) -> None:
    """Record the changed files that `command` lists behind all that it does to them."""
    listed = printed = behind = False
    where: str | None = place
    for part in parts_of(command) if "git" in command else ():
        where = moved_to(where, part)
        if part.then != "|" and (listing := _LISTS_CHANGES.fullmatch(part.text)):
            there = moved_to(where, Part(f"cd {listing[1]}", "", ())) if listing[1] else where
            listed, behind = not _is_elsewhere(there, tree["edited"]), False
        elif (step := git_step(part)) and (_commits(*step) or _takes_back(*step)):
            listed = False
        elif not part.text.startswith("cd "):
            behind, printed = listed, printed or not listed
    if behind:  # of what else prints, only a list before it is known to be one
        listed = listed and not printed
        output = (_SHORT_LIST.match(output) or [""])[0]
    if listed and (output.strip() or _ONLY_LISTS.fullmatch(command.strip())):
        names = (path.strip('"').rstrip("/") for path in _LISTED_CHANGE.findall(output))
        left = [*dict.fromkeys(names)][-MOST_EDITED:]
        if tree["edited"] and not left:
            tree["clean"] = True
        tree["edited"] = left
        tree.pop("in_place", None)


def _leaves_head(part: Part) -> bool:
    """Return whether a command only reads, checks or formats, so that it makes no commit."""
    said = part.text
    named = command_signature(said)
    return bool(only_reads(said) or _CHECKS.search(named) or _FORMATS_OR_BUILDS.search(named))


def _record_head(tree: WorkTree, command: str, output: str, place: str) -> None:
    """Record the newest commit that a log shows; if it is another than before, somebody committed outside of the conversation.

    Any command between the two that may have moved it, or changed the directory, makes that unknown.
    """
    parts = parts_of(command) if not place and command.lstrip().startswith("git log") else ()
    plain = parts and parts[0].then != "|" and _PLAIN_LOG.fullmatch(parts[0].text)
    found = _NEWEST_LOGGED.match(output.lstrip()) if plain else None
    if found and not found[1].isdigit():
        newest = found[1][:SHORT_NAME]
        if tree.get("head", newest) != newest and not tree["commit"].startswith(newest):
            tree["edited"], tree["outside"] = [], newest
            tree.pop("in_place", None)
        tree["head"] = newest
    elif _MOVES.search(command) or not all(map(_leaves_head, parts_of(command))):
        tree.pop("head", None)
        tree.pop("outside", None)


def _is_elsewhere(place: str | None, edited: Sequence[str]) -> bool:
    """Return whether the directory `place` is not known, or has none of the edited files whose whole path is known."""
    known = [path for path in edited if path.startswith("/")]
    return place is None or (
        place.startswith("/") and bool(known) and not any(path.startswith(f"{place}/") for path in known)
    )


def place_given(arguments: JsonObject) -> str:
    """Return the directory in which a call asks to run its command; empty without one."""
    given = as_text(arguments.get("workdir")) or as_text(arguments.get("cwd"))
    places = {*map(_literal, _SCRIPT_PLACE.findall(script_in(arguments)))}
    return given or (places.pop() if len(places) == 1 else "")


def _record_branch(tree: WorkTree, command: str, output: str) -> None:
    for verb, words in [step for _, step in _git_steps(command)]:
        made = [name for flag, name in pairwise(words) if flag in _NEW_BRANCH]
        if verb in ("checkout", "switch") and made and "fatal:" not in output:  # with -q git does not say so
            tree["branch"] = made[0]
            tree.pop("rebased", None)
        elif moved := _quiet_checkout(verb, words):
            _record_quiet_checkout(tree, command, output, moved, sure=verb == "switch")
    if _SHOWS_BRANCH.search(command):
        for named in _BRANCH.findall(output):
            branch = next(filter(None, named))
            if branch != tree.get("branch", branch):
                tree.pop("rebased", None)
                _leave_branch(tree, command, output)
            tree["branch"] = branch
    rebased = _REBASED.search(output)
    if rebased and "--continue" in command:
        tree["rewritten"] = True
    if rebased and (base := _REBASES.search(command)):
        if rebased[1] != tree.get("branch", rebased[1]):
            _leave_branch(tree, command, output)
        tree["branch"], tree["rebased"] = rebased[1], base[1]


def _record_quiet_checkout(tree: WorkTree, command: str, output: str, branch: str, *, sure: bool) -> None:
    if branch != tree.get("branch", branch):
        _leave_branch(tree, command, output)
        tree.pop("rebased", None)
        del tree["branch"]  # a directory of this name may have been meant
    if sure:
        tree["branch"] = branch


def _quiet_checkout(verb: str, words: Sequence[str]) -> str:
    """Return the only operand of a quiet checkout that may be a branch; else ""."""
    names = [word for word in words if not word.startswith("-")]
    quiet = verb in ("checkout", "switch") and not {"-q", "--quiet"}.isdisjoint(words)
    if not quiet or len(names) != 1 or len(words) != 2 or _DROPPED.fullmatch(names[0].replace("/", "-")):
        return ""
    return "" if verb == "checkout" and _LOOKS_LIKE_FILE.fullmatch(names[0]) else names[0]


def _leave_branch(tree: WorkTree, command: str, output: str) -> None:
    """Forget the commits of another branch, unless this one was made from it."""
    steps = [step for _, step in _git_steps(command)]
    if "commits" not in tree or any(
        verb in ("checkout", "switch") and not _NEW_BRANCH.isdisjoint(words) for verb, words in steps
    ):
        return
    own = len(commits_in(command, output))
    tree["commits"] = tree["commits"][-own:] if own else []
    if not own:
        tree["commit"], tree["ahead"] = "", False


def record_refusal(tree: WorkTree, paths: Iterable[str], command: str = "") -> None:
    """Record that a person refused the edit of `paths`, or a `command` that commits or pushes."""
    for path in paths:
        tree["refused"] = [*_others(tree.get("refused", []), path), path][-MOST_NAMED:]
    if publishes(command):
        commits = any(_commits(*step) for _, step in _git_steps(command))
        tree["withheld"] = "commit" if commits else "push"


def _record_commits(tree: WorkTree, command: str, output: str, steps: _Steps) -> None:
    made, given = tree.get("commits", []), [step for _, step in steps]
    found = commits_in(command, output)
    left, staged = _uncommitted_after(command, tree["edited"], tree.get("staged"))
    matters = staged is not None or any(verb in _MAKE_COMMITS for verb, _ in given)
    # A status after a commit says of what it left out that nothing was added.
    refused = matters and not found and _NO_COMMIT.search(output)
    if any(_drops_commits(*step) for step in given):
        made = []  # which of them are left is unknown
    elif any(_rewrites(*step) for step in given) and not _NOTHING_MOVED.search(output):
        made = [re.sub(r"^[0-9a-f]{7,40} ", "", one) for one in made]
        tree["commit"] = ""  # each has another name now
    if any(verb in _MAKE_COMMITS for verb, _ in given):
        made = made[:-1] if amends_earlier(command) else made
        sure = found or not any(_takes_back(*step) for step in given)
        commits = any(_commits(*step) for step in given) and sure and not refused
        if commits and not found and is_quiet_commit(command, output):
            found = [("", said.partition("\n")[0]) for said in commit_messages(command)]
        lasting = without_amended(command, found)
        made = [*made, *(f"{name} {subject[:SUBJECT_CHARS]}".strip() for name, subject in lasting)]
        if commits:
            tree["made"] = [path for path in tree.get("made", ()) if path in left]
            tree["edited"], tree["commit"] = left, found[-1][0] if found else ""
            tree["committed"] = tree["ahead"] = True
            tree.pop("staged", None)
            tree.pop("withheld", None)
    _record_staged(tree, staged if not refused else None, reset=any(verb == "reset" for verb, _ in given))
    if merged := [words for verb, words in given if verb in ("merge", "pull") and _MERGED.search(output)]:
        made = [*made, _merge_subject(command, merged[-1])]
        tree["commit"], tree["committed"], tree["ahead"] = "", True, True  # git prints no name of it
    if made or "commits" in tree:
        tree["commits"] = made[-MOST_COMMITS:]
        if any(verb == "log" and "--oneline" in words for verb, words in given):
            _rename_commits(tree, output)


def _merge_subject(command: str, words: Sequence[str]) -> str:
    """Return the subject that a merge was given, else what it merged."""
    given = next((message_of(part) for part in parts_of(command) if "merge" in part.text), "")
    merged = [word for word in words if not word.startswith("-")][-1:]
    return given.partition("\n")[0][:SUBJECT_CHARS] or " ".join(["Merge", *merged])


def _record_staged(tree: WorkTree, staged: list[str] | None, *, reset: bool) -> None:
    if staged is not None:
        tree["staged"] = staged
    if reset:
        tree.pop("staged", None)


def message_of(part: Part) -> str:
    """Return what a commit says, or a title and the text below it, of options and here-documents."""
    documents = iter(part.documents)
    texts = [next(documents, "") if "<<\0" in one else _unquoted(one) for one in _MESSAGE.findall(part.text)]
    return _TRAILERS.sub("", clean("\n\n".join(filter(None, [*texts, *documents])))).strip()


def _unquoted(text: str) -> str:
    bare = text[1:-1] if text[:1] in "\"'" else text
    return bare.replace('\\"', '"').replace("\\`", "`")


def is_quiet_commit(command: str, output: str) -> bool:
    """Return whether a `command` that did not fail made commits that git did not print.

    >>> is_quiet_commit("git commit -qm Retry", ""), is_quiet_commit("git commit -m Retry", "nothing to commit")
    (True, False)
    """
    commits = [(part, step[1]) for part in parts_of(command) if (step := git_step(part)) and _commits(*step)]
    # An amend without a message has that of the commit before, which may be of another call.
    said = all(_is_quiet(words) and ("--amend" not in words or message_of(part)) for part, words in commits)
    return bool(commits) and said and not _NO_COMMIT.search(output)


def _amends(command: str) -> list[bool]:
    """Return for each commit of `command` whether it amends the one before."""
    return ["--amend" in words for verb, words in git_commands(command) if _commits(verb, words)]


def amends_earlier(command: str) -> bool:
    """Return whether `command` amends a commit that it did not make itself.

    >>> amends_earlier("git commit --amend -m 'Add a; b'"), amends_earlier("git commit -m A && git commit --amend -m B")
    (True, False)
    """
    return _amends(command)[:1] == [True]


def without_amended(command: str, made: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the commits that `command` `made` without those that it amended itself; all, if which they are is unknown.

    >>> without_amended("git commit -m A && git commit --amend -m B", [("1a2b3c4", "A"), ("2b3c4d5", "B")])
    [('2b3c4d5', 'B')]
    """
    amended = [*_amends(command)[1:], False]
    return [one for at, one in enumerate(made) if len(made) != len(amended) or not amended[at]]


def commit_messages(command: str) -> list[str]:
    """Return the messages that the commits of `command` are given on the command line.

    >>> commit_messages("git add a && git commit -qm 'Add a' && git commit --dry-run -m 'Add b'")
    ['Add a']
    """
    made = (part for part in parts_of(command) if (step := git_step(part)) and _commits(*step))
    return [said for part in made if (said := message_of(part))]


def _is_quiet(words: Sequence[str]) -> bool:
    flags = (_COMMIT_FLAGS.match(word) for word in words if not word.startswith("--"))
    return "--quiet" in words or any(one and "q" in one[1] for one in flags)


def _rewrites(verb: str, words: Sequence[str]) -> bool:
    if verb == "pull":
        return not {"--rebase", "-r"}.isdisjoint(words)
    return verb == "rebase" and "--abort" not in words


def _rename_commits(tree: WorkTree, log: str) -> None:
    """Give the commits that `log` lists with another name that name: they were made again outside the conversation."""
    listed = [(name, subject[:SUBJECT_CHARS]) for name, subject in _LOGGED_COMMIT.findall(log)]
    held = [_COMMIT_ENTRY.fullmatch(one) for one in tree["commits"]]
    # Merges often have the same subject: which is which, it does not say.
    subjects = [[one for _, one in listed], [one["subject"] for one in held if one]]
    named = {
        subject: name for name, subject in listed if all(all_of.count(subject) == 1 for all_of in subjects)
    }
    for at, one in enumerate(held):
        name = named.get(one["subject"], "") if one else ""
        if one and name and not name.startswith(one["name"] or " "):
            if one["name"] and one["name"] == tree["commit"]:
                tree["commit"] = name
            tree["commits"][at] = f"{name} {one['subject']}"


def _uncommitted_after(
    command: str, edited: list[str], staged: list[str] | None
) -> tuple[list[str], list[str] | None]:
    """Return which of the `edited` files no commit of `command` has, and which are staged after it; None if unknown.

    Only files that are named can be left: a commit of what was staged unseen, or of a folder, may have all of them.
    """
    left, read = edited, False
    for verb, words in git_commands(command):
        if verb == "commit":
            named = _committed(words, edited)
            taken = staged if named is None else named
            left = [name for name in left if name not in (edited if taken is None else taken)]
            staged, read = [name for name in staged or () if name in left] or None, True
        elif verb in _STAGING:
            staged = [*dict.fromkeys([*(staged or ()), *_named_files(words, edited)])]
        elif verb == "restore" and staged is not None:
            staged = [name for name in staged if name not in _named_files(words, edited)]
    if "xargs" in command and _STAGES_UNSEEN.search(unquoted(command)):
        return [], [*edited]
    return (left if read else []), staged


def _committed(words: Sequence[str], edited: list[str]) -> list[str] | None:
    """Return the files that a commit with these arguments takes; None if those that are staged."""
    paths, rest = list[str](), iter(words)
    for word in rest:
        if word == "--":
            paths += rest
        elif word.startswith("--"):
            if word in ("--all", "--include") or word.startswith("--pathspec-from-file"):
                return edited
            if word in _VALUED:
                next(rest, "")
        elif flags := _COMMIT_FLAGS.match(word):
            if {"a", "i"} & {*flags[1]}:
                return edited
            if flags[2] and not flags[3]:
                next(rest, "")
        else:
            paths.append(word)
    return _named_files(paths, edited) if paths else None


def _named_files(words: Iterable[str], edited: list[str]) -> list[str]:
    """Return the edited files that the arguments of `git add` name: all, if one names anything else."""
    found: list[str] = []
    for word in words:
        if not word.startswith("-"):
            named = [one for one in edited if _is_same(one, word)]
            if not named:  # it may be the name of a folder, of a list or of a pattern
                return [*edited]
            found += named
    return found or [*edited]


def commits_in(command: str, output: str) -> list[tuple[str, str]]:
    r"""Return name and subject of the commits that `command` made, as git printed them.

    >>> commits_in("git commit -qm Retry && git log --oneline -1", "617fc5e Retry\n")
    [('617fc5e', 'Retry')]
    """
    if not any(step[0] in _MAKE_COMMITS for _, step in _git_steps(command)):
        return []
    if named := _COMMIT_NAME.findall(output):
        return list(named)
    shown = _shows_commit(parts_of(command)) and not _NO_COMMIT.search(output)
    return _LOGGED_COMMIT.findall(output)[:1] if shown else []


def _shows_commit(parts: Sequence[Part]) -> bool:
    """Return whether a quiet commit is shown behind it: "617fc5e Add a page"."""
    behind = False
    for at, part in enumerate(parts):
        verb, words = git_step(part) or ("", [])
        if _commits(verb, words):
            behind = True
        elif behind and verb == "log" and "--oneline" in words and parts[at - 1].then == "&&":
            return True
    return False


def work_tree_lines(tree: WorkTree, *, whole: bool) -> Iterator[str]:
    """Yield what is uncommitted, unpushed and unchecked; `whole`: no call of the conversation is missing.

    The commits come last, the newest first.

    >>> tree = new_work_tree()
    >>> record_in_work_tree(tree, {"src/a.py": "changed"}, "", ""), [*work_tree_lines(tree, whole=True)][0]
    (True, 'Uncommitted, as of the last call: a.py.')
    """
    if names := tree["edited"]:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        yield f"Uncommitted, as of the last call: {', '.join(file_names(names)[-MOST_NAMED:])}{more}."
    elif tree.get("clean"):
        yield "No file was uncommitted at the last `git status`."
    if outside := tree.get("outside"):
        yield f"The newest commit, {outside}, was made outside of this conversation."
    yield from _pushed_lines(tree, whole=whole)
    if refused := tree.get("refused"):
        only = whole and tree.get("untouched")
        nothing = ", and no other edit was made in this conversation" if only else ""
        yield f"The person refused the edit of {', '.join(file_names(refused))}{nothing}."
    if withheld := tree.get("withheld"):
        yield f"The person refused the newest `git {withheld}`."
    if (branch := tree.get("branch")) and (names or tree["committed"]):
        on = f", rebased on {base}" if (base := tree.get("rebased")) else ""
        yield f"The branch is {branch}{on}."
    if tree["unchecked"]:
        yield UNCHECKED
    if made := tree.get("commits"):
        yield f"{COMMITS_LEAD}{'; '.join(reversed(made))}."


def _pushed_lines(tree: WorkTree, *, whole: bool) -> Iterator[str]:
    name = f", {tree['commit']}," if tree["commit"] else ""
    if (
        whole
        and (tree["edited"] or tree.get("in_place"))
        and not (tree["committed"] or tree.get("rewritten"))
    ):
        yield "Nothing was committed in this conversation."
    elif tree["ahead"] and (whole or tree["pushed"]):
        yield (
            f"The last commit{name} was not pushed."
            if tree["pushed"]
            else "Nothing was pushed in this conversation."
        )
    elif tree["commit"] and tree["pushed"]:
        yield f"The last commit{name} was pushed."


def answers_in(result: str) -> list[str]:
    """Return a person's answers, each with its question and notes, if that is what the result of a tool says; else nothing.

    >>> answers_in('Your questions have been answered: "Which port?"="8080" notes: not 80, "Why?"="It is "free"". You can now continue.')
    ['"Which port?"="8080" notes: not 80', '"Why?"="It is "free""']
    >>> answers_in("The user responded: none of these")
    ['none of these']
    """
    found = _ANSWERED.match(result)
    if not found:
        return []
    said, wrote = result[found.end() :].strip(), ""
    if not found["freely"]:
        end = max(map(said.rfind, _ANSWERS_END))
        said, _, wrote = (said[:end] if end >= 0 else said).partition(_ALSO_WROTE)
    answers: list[list[str]] = []
    complete = False
    for piece in said.strip(" .").split(_NEXT_ANSWER):
        # Quotes and commas are part of what people write: only a question with its answer follows another.
        if not answers or (complete and _ANSWER_IS in piece):
            answers.append([f'"{piece}' if answers else piece])
            complete = False
        else:
            answers[-1].append(piece)
        complete = complete or _ANSWER_IS in piece
    whole = (_PREVIEW.sub("", _NEXT_ANSWER.join(pieces)) for pieces in answers)
    return [*filter(None, (*whole, wrote.removesuffix('"')))]


def unknown_outcome(command: str) -> str:
    """Return what is to be said of a `command` without an answer if it commits or pushes; else ""."""
    steps = [step for _, step in _git_steps(command) if _commits(*step) or _pushes(*step)]
    return f"How the newest `git {steps[-1][0]}` came out is not known." if steps else ""


def publishes(command: str) -> bool:
    """Return whether `command` commits or pushes."""
    return any(_commits(*step) or _pushes(*step) for _, step in _git_steps(command))


def is_refusal(text: str) -> bool:
    """Return whether the result of a call says that a person refused it."""
    return bool(_REFUSED.search(text[:_REFUSAL_CHARS]))


def words_of_refusal(text: str) -> str:
    r"""Return the words with which a person refused a call, if `text` is a refusal with any.

    >>> words_of_refusal("The user doesn't want to proceed with this tool use. So the user said:\nno mocks please")
    'no mocks please'
    """
    said = _REFUSAL_REASON.search(text) if is_refusal(text) else None
    return said[1].strip() if said else ""


def failure_key(label: str) -> str:
    """Return the key of a failure, the same when it is tried again: a command's target, or the file of another tool.

    That of a command ends in a line with the directory, if it names one.

    >>> failure_key("$ pytest -x tests/a.py"), failure_key("Edit src/a.py"), failure_key("cancel_order")
    ('$ pytest tests/a.py', 'src/a.py', 'cancel_order')
    """
    if label.startswith(SHELL):
        command = label[len(SHELL) :]
        place = place_of(command)
        return f"{SHELL}{command_target(command)}" + (f"{_IN}{place}" if place else "")
    return label.partition(" ")[2] or label


def resolves(done: str, failed: str, *, whole: bool = False) -> bool:
    """Return, by their keys, whether the successful call is the failed one, or includes it; with `whole`, all of its chain.

    >>> resolves("$ pytest", "$ pytest tests/a.py"), resolves("$ pytest tests/b.py", "$ pytest tests/a.py")
    (True, False)
    """
    if done.startswith(SHELL) and failed.startswith(SHELL):
        (later, _, place), (earlier, _, other) = done.partition(_IN), failed.partition(_IN)
        if place and other and not (_is_same(place, other) or other.startswith(f"{place}/")):
            return False
        return covers(later[len(SHELL) :], earlier[len(SHELL) :], whole=whole)
    return done == failed


def is_harmless(command: str, output: str) -> bool:
    """Return whether a failed call needs no note: a slip of the tool's protocol, or a search without results."""
    searched = bool(command) and (only_reads(command) or is_empty_search(command, output))
    return searched or bool(_SLIP.match(output))


def _failed(call: Call) -> bool:
    """Return whether a call failed: by its flag, else by the output of the command."""
    if call.result is None or call.result.is_error:
        return call.result is not None
    return bool(call.command) and reports_failure(call.command, without_injected(call.result.text))


def _label(call: Call) -> str:
    if call.command:
        return f"{SHELL}{short_command(call.command)}"
    path = next((call.arguments[key] for key in _ABOUT_KEYS if isinstance(call.arguments.get(key), str)), "")
    path = path or next((change.path for change in file_changes(call.arguments)), "")
    return f"{call.tool} {path}".strip().partition("\n")[0]


def _key(text: str) -> str:
    return failure_key(text.partition("\n")[0])
