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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from aether import regular
from aether.messages.model import Block, Message, as_text
from aether.messages.shell import (
    Part,
    command_target,
    covers,
    error_excerpt,
    git_step,
    is_undecided,
    moved_to,
    only_reads,
    parts_of,
    place_of,
    reports_failure,
    segments,
    short_command,
)
from aether.redact.redact import without_blocks
from aether.text.cleaning import clean, without_injected
from aether.text.regex import lazy
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

_PATCH_ACTIONS: dict[str, Action] = {"Add": "created", "Update": "changed", "Delete": "deleted"}
# Of Claude Code: a person answers its questions.
ASKING_TOOL = "AskUserQuestion"
# How Claude Code introduces a person's answers, and how it goes on after them.
_ANSWERED = lazy(
    r"\A(?:.{0,40}(?:questions have been answered|answered your questions)|The user (?:answered|(?P<freely>responded))(?=:)"
    r"|The user asked for more questions before (?:answering|you proceed\. So far they answered))(?::\s*)?"
)
_ANSWERS_END = (". You can now", ". Read the answers carefully", ". Call AskUserQuestion again")
_ALSO_WROTE = 'They also wrote: "'
_ANSWER_IS, _NEXT_ANSWER = '"="', ', "'
# What Claude Code adds to an option that was chosen; the agent wrote it.
_PREVIEW, _NOTES = " selected preview:\n", " notes: "
_PATCHED = lazy(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_WRITTEN = lazy(
    r"(?:^|[;&|\n]\s*)(?:(?:cat|tee)\b[^\n|;&]*?(?:>{1,2}\s*)?([\w./~@+-]+)\s*<<|cat\s*>{1,2}\s*([\w./~@+-]+))"
)
_IN_PLACE = lazy(r"\bsed\s+-i\S*\s+(?:''\s+)?(?:-e\s+)?(?:'[^']*'|\"[^\"]*\")((?:\s+[\w./~@+-]+)+)")
_DEFINED = lazy(
    r"^\+?\s*(?:(?:export|default|async|pub|public|private|protected|static|abstract|final|override)\s+)*"
    r"(?:def|func|function|class|type|interface|struct|enum|fn|trait|const)\s+(?:\([^)]{0,80}\)\s*)?([A-Za-z_]\w*)",
    re.MULTILINE,
)
HASH_DIGITS = 12
_WHOLE_KEYS = ("content", "file_text", "contents")
_PARTS = frozenset({"offset", "limit", "view_range", "start_line", "end_line", "pages"})
# Words in the names of tools that read a file; those that look for files or list them name a folder.
_READERS = frozenset("read view open cat show get fetch".split())
_SEARCHERS = frozenset("grep glob search find list ls tree".split())
_NUMBERED = ("1→", "1\t", "1: ", "1|")
_SHOWS = frozenset({"cat", "head", "tail", "less", "more", "nl", "bat"})
_REDIRECTED = lazy(r"(?<![0-9&>=-])>{1,2}\s*([\w./~@+-]*[\w~@+-])(?=\s|$)")
_LOOKS_LIKE_FILE = lazy(r"(?:[\w~.@+-]*/)*[\w~.@+-]*(?:\.\w+|[A-Z]\w+)")
_MAKE_COMMITS = frozenset({"commit", "revert", "cherry-pick", "merge", "am", "rebase"})
# What git answers to a commit.
_COMMITTED = lazy(
    r"^\[(?:detached HEAD|([^\]\s]+)(?: \(root-commit\))?) ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE
)
# What a commit says, or the title and the text of a pull request, on the command line.
_MESSAGE = lazy(
    r"""\s(?:-[a-z]*m|--message|--title|-t|--body|-b)[ =]("(?:\\.|[^"\\])*"|'[^']*')""", re.DOTALL
)
# What an editor answers that wrote a file over another one.
_OVERWRITTEN = ("has been updated", "has been overwritten", "overwrote")
_ANSWER_CHARS = 600
# What separates a target from the directory that it is in.
_IN = "\n"
# Enough to recognise an error by; the full text is in the archive.
COMPLAINT_CHARS = 300
SHELL = "$ "
_ABOUT_KEYS = ("file_path", "path", "notebook_path", "url")
# A script of Codex that calls tools: `const r = await tools.exec_command({cmd: "make test"}); text(r.output)`.
_SCRIPTED = ("tools.exec_command(", "tools.apply_patch(")
# One without an end goes as far as it can, so that it is not read again and again.
_STRING = r"""(?:"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?|`(?:\\.|\$(?!\{)|[^`\\$])*+`?)"""
_ESCAPE = lazy(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_WRITTEN_OUT = rf"(?:String\.raw)?{_STRING}"
_LITERAL = lazy(_WRITTEN_OUT)
_SCRIPT_COMMAND = lazy(
    rf"""\btools\.exec_command\(\s*\{{(?:[^{{}}"'`]|{_STRING})*?["']?\bcmd["']?\s*:\s*({_WRITTEN_OUT})"""
)
# How results of slips of a tool's own protocol start: they are corrected in the next call.
_SLIPS = (
    "<tool_use_error>", "File has not been read", "File has been modified", "String to replace not found", "No changes to make",
    "InputValidationError", "Argument Validation Error", "Sibling tool call", "[Request interrupted", "Cancelled",
    "The user doesn't want to", "Claude requested permissions", "Permission to use", "Your proposed edit has introduced new syntax",
)  # fmt: skip
# A refusal opens with its own words, and names the reason behind others.
_REFUSED = (
    "The user doesn't want to proceed", "The user doesn't want to take this action", "user rejected", "tool use was rejected",
    "but you haven't granted it",
)  # fmt: skip
_REASON = "the user said:"
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
    calls: list[Call] = []
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for block in message.blocks:
            if block.kind == "call":
                waiting.setdefault(block.call_id, []).append(len(calls))
                calls.append(Call(index, block.tool, block.arguments, shell_command(block.arguments), None))
            elif block.kind == "result" and waiting.get(block.call_id):
                place = waiting[block.call_id].pop()
                calls[place] = calls[place]._replace(result=block)
    return calls


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
    if not isinstance(text, str) or not any(call in text for call in _SCRIPTED):
        return ""
    return "\n".join("" if line.lstrip(" \t").startswith("//") else line for line in text.split("\n"))


def tool_words(tool: str) -> list[str]:
    """Return the words in the name of a tool, without its server.

    >>> tool_words("mcp__shop__cancelOrder"), tool_words("NotebookEdit")
    (['cancel', 'order'], ['notebook', 'edit'])
    """
    return CAMEL.sub("_", tool.rsplit("__", 1)[-1]).lower().replace("-", "_").split("_")


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


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(escape[3], escape[3])


class FileChange(NamedTuple):
    """A file that a call changed; `action` is `created`, `changed` or `deleted`."""

    path: str
    action: Action
    lines: int = 0
    names: tuple[str, ...] = ()
    """Functions and classes that the new text defines."""


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
        yield from _by_patch("\n".join(literal for literal in literals if "*** Begin Patch" in literal))
    elif "*** Begin Patch" in patch:
        yield from _by_patch(patch)
    elif command:
        yield from _by_shell(command)
    else:
        yield from _by_tool(arguments)


def _by_patch(patch: str) -> Iterator[FileChange]:
    heads = list(_PATCHED.finditer(patch))
    stops = [*(head.start() for head in heads[1:]), len(patch)]
    for head, end in zip(heads, stops, strict=False):
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
    is_whole = not old and any(key in arguments for key in _WHOLE_KEYS)
    yield _described(path, "created" if is_whole else "changed", "\n".join(new), "\n".join(old))


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
    head = command[:_TEXT_CHARS]
    written = [path[1] or path[2] for path in _WRITTEN.finditer(head)]
    for path in dict.fromkeys(written):
        text = head.partition("\n")[2] if len(written) == 1 else ""
        yield _described(path, "changed" if ">>" in head else "created", text, "")
    for edit in _IN_PLACE.finditer(head):
        yield from (FileChange(path, "changed") for path in edit[1].split() if path != "+")
    for part in parts_of(head):
        words = part.text.split()
        program, *arguments = (words[1:] if words[:1] == ["git"] else words) or [""]
        paths = [] if {"--cached", "--dry-run"} & {*arguments} else _named(arguments)
        if program == "rm":
            yield from (FileChange(path, "deleted") for path in paths if _LOOKS_LIKE_FILE.fullmatch(path))
        elif program in ("mv", "cp") and len(paths) == 2 and all(map(_LOOKS_LIKE_FILE.fullmatch, paths)):
            if program == "mv":
                yield FileChange(paths[0], "deleted")
            yield FileChange(paths[1], "created")


def as_answered(change: FileChange, answer: str) -> FileChange:
    """Return `change` as the answer to its call shows it: a file that was written whole may have been there before.

    >>> as_answered(FileChange("a.py", "created", 3), "The file a.py has been updated successfully.").action
    'changed'
    """
    is_overwritten = change.action == "created" and any(
        words in answer[:_ANSWER_CHARS] for words in _OVERWRITTEN
    )
    return change._replace(action="changed") if is_overwritten else change


def _named(words: Iterable[str]) -> list[str]:
    return [word.strip("'\"") for word in words if not word.startswith("-")]


def _described(path: str, action: Action, new: str, old: str) -> FileChange:
    new, before = without_blocks(new)[:_TEXT_CHARS], {*_DEFINED.findall(old[:_TEXT_CHARS])}
    names = tuple(dict.fromkeys(name for name in _DEFINED.findall(new) if name not in before))[:_NAMES]
    return FileChange(path, action, new.count("\n") + 1 if new else 0, names)


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
    facts: dict[str, FileFact] = {}
    for call in calls:
        if call.result is not None and not call.result.is_error:
            for fact in _touched(call):
                _count(facts, fact)
    return _each_once(facts)


def _each_once(facts: dict[str, FileFact]) -> tuple[FileFact, ...]:
    """Return `found` with each relative path that ends exactly one absolute one joined to that."""
    absolute = [path for path in facts if path.startswith("/")]
    for path in [
        path_ for path_ in facts if absolute and path_.strip("./") and not path_.startswith(("/", "~"))
    ]:
        matches = [path_ for path_ in absolute if path_.endswith(f"/{path.removeprefix('./')}")]
        if len(matches) == 1 and matches[0] in facts:
            fact = facts.pop(path)
            _count(facts, fact._replace(path=matches[0]))
    return tuple(facts.values())


def merged_files(older: Iterable[FileFact], newer: Iterable[FileFact]) -> tuple[FileFact, ...]:
    """Return one entry for each path, counts added, the newest at the end.

    >>> merged_files([FileFact("a", "created", 1, "0f")], [FileFact("b", "read", 1), FileFact("a", "changed", 2)])
    (FileFact(path='b', action='read', times=1, sha256=''), FileFact(path='a', action='created', times=3, sha256=''))
    """
    facts = {fact.path: fact for fact in older}
    for fact in newer:
        _count(facts, fact)
    return _each_once(facts)


def _count(facts: dict[str, FileFact], fact: FileFact) -> None:
    before = facts.get(fact.path)
    if before is None:
        facts[fact.path] = fact
    elif fact.action == "read" and before.action != "read":
        # Reading changes nothing; whole contents that were read again are the present ones.
        facts[fact.path] = before._replace(sha256=fact.sha256 or before.sha256)
    else:
        facts.pop(fact.path)
        times = before.times if before.action != "read" or fact.action == "read" else 0
        action = fact.action
        if before.action == "created" and action == "changed":
            action = "created"  # in all it was created
        elif before.action in {"read", "changed"} and action == "created":
            action = "changed"
        facts[fact.path] = fact._replace(action=action, times=times + fact.times)


def _touched(call: Call) -> Iterator[FileFact]:
    changed = False
    texts = [call.arguments[key] for key in _WHOLE_KEYS if isinstance(call.arguments.get(key), str)]
    digest = short_hash(texts[0]) if texts and not call.command else ""
    answer = call.result.text if call.result else ""
    for change_ in file_changes(call.arguments, call.command):
        changed = True
        change = as_answered(change_, answer)
        yield FileFact(change.path, change.action, 1, digest)
    if call.command:
        for part in segments(call.command):
            yield from (FileFact(path, "read", 1) for path in _shown(part))
            # Output in a file is a fact of the work, but no change that memory would note.
            written = None if part.split()[:1] == ["cat"] else _REDIRECTED.search(part)
            if written and written[1] != "/dev/null":
                yield FileFact(written[1], "changed" if ">>" in part else "created", 1)
    elif not changed:
        arguments = call.arguments
        path = next(filter(None, (as_text(arguments.get(key)) for key in _PATH_KEYS)), "")
        words = tool_words(call.tool)
        reads = not _READERS.isdisjoint(words) and _SEARCHERS.isdisjoint(words)
        if path and (reads or arguments.get("command") == "view") and not path.endswith("/"):
            in_full = answer and not _PARTS & arguments.keys() and not answer.lstrip().startswith(_NUMBERED)
            yield FileFact(path, "read", 1, short_hash(answer) if in_full else "")


def short_hash(text: str) -> str:
    """Return the first digits of the SHA-256 of `text`, as `sha256sum` prints them for a file of it."""
    return regular.digest(text.encode("utf-8", "surrogatepass"))[:HASH_DIGITS]


def _shown(part: str) -> list[str]:
    """Return the files that one command of a line prints."""
    words = part.split()
    if words[:2] == ["sed", "-n"] and len(words) == 4:
        return [words[3]]
    if words and words[0] in _SHOWS and ">" not in part:
        return [path for path in _named(words[1:]) if _LOOKS_LIKE_FILE.fullmatch(path)]
    return []


def failures_of(
    calls: Iterable[Call], *, removed: Callable[[int], bool], before: Iterable[ErrorFact] = ()
) -> tuple[ErrorFact, ...]:
    """Return the failures among the calls at `removed` positions, and those of `before` that are closed by now.

    All `calls` can close a failure, also those that stay.
    """
    earlier = {_key(error.text): error for error in before if error.open}
    failures: dict[str, ErrorFact] = {}
    for call in calls:
        if call.result is None:
            continue
        label = _label(call)
        key = failure_key(f"{SHELL}{call.command}" if call.command else label)
        if not _failed(call):
            if call.command and is_undecided(call.command, call.result.text):
                continue
            for failed, error in [*earlier.items(), *failures.items()]:
                if resolves(key, failed):
                    failures[failed] = failures.get(failed, error)._replace(open=False)
        elif removed(call.at) and not is_harmless(call.command, call.result.text):
            failures.pop(key, None)
            text = error_excerpt(without_injected(call.result.text))
            text = text if len(text) <= COMPLAINT_CHARS else text[: COMPLAINT_CHARS - 1] + "…"
            failures[key] = ErrorFact(f"{label}\n{text}".rstrip("\n"), open=True)
    return tuple(failures.values())


def merged_failures(older: Iterable[ErrorFact], newer: Iterable[ErrorFact]) -> tuple[ErrorFact, ...]:
    r"""Return one entry for each failure in its present state, the newest at the end.

    >>> merged_failures([ErrorFact("$ make\nno rule", open=True)], [ErrorFact("$ make -j2\nno rule", open=False)])
    (ErrorFact(text='$ make -j2\nno rule', open=False),)
    """
    failures: dict[str, ErrorFact] = {}
    for error in (*older, *newer):
        key = _key(error.text)
        for failed in [
            other_key
            for other_key in failures
            if other_key == key or (not error.open and resolves(key, other_key))
        ]:
            del failures[failed]
        failures[key] = error
    return tuple(failures.values())


def _is_same(first: str, second: str) -> bool:
    """Return whether two paths can be of one file: one of them may be relative to any directory above it."""
    first, second = f"/{first.removeprefix('./')}", f"/{second.removeprefix('./')}"
    return first.endswith(second) or second.endswith(first)


def message_of(part: Part) -> str:
    """Return what a commit says, or a title and the text below it, of options and here-documents."""
    documents = iter(part.documents)
    texts = [
        next(documents, "") if "<<\0" in text else _unquoted(text) for text in _MESSAGE.findall(part.text)
    ]
    lines = clean("\n\n".join(filter(None, [*texts, *documents]))).rstrip().split("\n")
    while lines and (not lines[-1].strip() or _is_trailer(lines[-1])):
        lines.pop()
    return "\n".join(lines).strip()


def _is_trailer(line: str) -> bool:
    """Return whether a line names who helped to write a commit: "Co-Authored-By: …", "Generated with …"."""
    name, sign, _ = line.partition(": ")
    return (bool(sign) and name.lower().endswith("-by")) or "Generated with" in line


def _unquoted(text: str) -> str:
    bare = text[1:-1] if text[:1] in "\"'" else text
    return bare.replace('\\"', '"').replace("\\`", "`")


def commit_messages(command: str) -> list[str]:
    """Return the messages that the commits of `command` are given on the command line.

    >>> commit_messages("git add a && git commit -qm 'Add a' && git push")
    ['Add a']
    """
    commits = (part for part in parts_of(command) if (step := git_step(part)) and step[0] == "commit")
    return [message for part in commits if (message := message_of(part))]


class Committed(NamedTuple):
    """A commit as git answers it."""

    branch: str
    """Empty for a detached head."""
    id: str
    subject: str


def commits_in(command: str, output: str) -> list[Committed]:
    r"""Return the commits that `command` made, as its `output` names them.

    >>> commits_in("git commit -m Retry", "[main 617fc5e] Retry\n 1 file changed")
    [Committed(branch='main', id='617fc5e', subject='Retry')]
    """
    verbs = {step[0] for part in parts_of(command) if (step := git_step(part))} if "git" in command else set()
    if _MAKE_COMMITS.isdisjoint(verbs):
        return []
    return [Committed(*match) for match in _COMMITTED.findall(output)]


def answers_in(result: str) -> list[str]:
    """Return a person's answers, each with its question and notes, if that is what the result of a tool says; else nothing.

    >>> answers_in('Your questions have been answered: "Which port?"="8080" notes: not 80, "Why?"="It is "free"". You can now continue.')
    ['"Which port?"="8080" notes: not 80', '"Why?"="It is "free""']
    >>> answers_in("The user responded: none of these")
    ['none of these']
    """
    opening = _ANSWERED.match(result)
    if not opening:
        return []
    text, wrote = result[opening.end() :].strip(), ""
    if not opening["freely"]:
        end = max(map(text.rfind, _ANSWERS_END))
        text, _, wrote = (text[:end] if end >= 0 else text).partition(_ALSO_WROTE)
    answers: list[list[str]] = []
    complete = False
    for piece in text.strip(" .").split(_NEXT_ANSWER):
        # Quotes and commas are part of what people write: only a question with its answer follows another.
        if not answers or (complete and _ANSWER_IS in piece):
            answers.append([f'"{piece}' if answers else piece])
            complete = False
        else:
            answers[-1].append(piece)
        complete = complete or _ANSWER_IS in piece
    answers_ = (_without_preview(_NEXT_ANSWER.join(pieces)) for pieces in answers)
    return [*filter(None, (*answers_, wrote.removesuffix('"')))]


def _without_preview(answer: str) -> str:
    choice, _, preview = answer.partition(_PREVIEW)
    return choice + "".join(preview.partition(_NOTES)[1:])


def is_refusal(text: str) -> bool:
    """Return whether the result of a call says that a person refused it."""
    return any(words in text[:_REFUSAL_CHARS] for words in _REFUSED)


def words_of_refusal(text: str) -> str:
    r"""Return the words with which a person refused a call, if `text` is a refusal with any.

    >>> words_of_refusal("The user doesn't want to proceed with this tool use. So the user said:\nno mocks please")
    'no mocks please'
    """
    return text.partition(_REASON)[2].strip() if is_refusal(text) else ""


@lru_cache(maxsize=4_096)
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
    searched = bool(command) and only_reads(command)
    first, _, below = output.lstrip().partition("\n")
    return searched or (below if first.startswith("Exit code") else first).lstrip().startswith(_SLIPS)


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
