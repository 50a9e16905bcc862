"""Rules that act: which calls of tools a person's rule stops. Deterministic, without a model, and without side effects.

A rule names a command, a regular expression, a path or a tool. A command is compared with every simple command that the
line would run (`aether.text.shell_syntax`), so that neither quoting nor nesting passes it; a line that cannot be known
without running it is asked about. A rule of a path is for the tools that edit files.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from aether.redact.redact import is_private
from aether.text.shell_syntax import MOST_WORDS, UNKNOWN, Unreadable, commands, program_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from aether.types import Action, EnforcedRule, JsonObject

SHELLS = frozenset({"Bash", "PowerShell"})
EDITORS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch", "Delete"})
_PATTERN_SIGNS = "*?["
# With more variables a command is asked about, not compared.
_MOST_UNKNOWN = 20
# Commands of git itself, which no alias can hide: the usual ones, so that git is hardly ever asked for its aliases.
_GIT_COMMANDS = frozenset(
    "add am apply archive bisect blame branch checkout cherry-pick clean clone commit config describe diff fetch format-patch gc grep help init log "
    "ls-files ls-remote ls-tree merge merge-base mv notes pull push rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show "
    "sparse-checkout stash status submodule switch symbolic-ref tag worktree".split()
)


class Decision(NamedTuple):
    """The rule that stops a call, and why it is asked about if that is not because it fits."""

    rule: EnforcedRule
    action: Action
    doubt: str = ""


def decide(
    rules: Iterable[EnforcedRule], tool: str, arguments: JsonObject, directory: str,
    git_aliases: Callable[[str], Mapping[str, str]] = lambda _: {},
) -> Decision | None:  # fmt: skip
    """Return what stops the call of `tool` in `directory`; None if nothing does. Denying comes before asking.

    `git_aliases` returns the aliases of git in a directory; it is called for a verb that may be one.
    """
    decisions = [
        decision
        for rule in rules
        if (decision := _decision(rule, tool, arguments, directory, git_aliases)) is not None
    ]
    return min(decisions, key=lambda decision: decision.action != "deny", default=None)


def _decision(
    rule: EnforcedRule, tool: str, arguments: JsonObject, directory: str, git_aliases: Callable[[str], Mapping[str, str]],
) -> Decision | None:  # fmt: skip
    if not _is_for(rule, tool):
        return None
    line = arguments.get("command")
    doubt = ""
    if rule["path"]:
        fits: bool | None = is_private(arguments, rule["path"], directory)
    elif rule["regex"]:
        fits = isinstance(line, str) and re.search(rule["regex"], line) is not None
    elif rule["command"]:
        aliases = partial(git_aliases, directory)
        fits, doubt = _fits_line(rule["command"], line, aliases) if isinstance(line, str) else (False, "")
    else:
        fits = True
    if fits is None:
        return Decision(rule, "ask", doubt)
    return Decision(rule, rule["action"]) if fits else None


def _fits_line(
    pattern: str, line: str, git_aliases: Callable[[], Mapping[str, str]]
) -> tuple[bool | None, str]:
    """Return whether a command in `line` fits `pattern`; None, and why, if that cannot be known without running it."""
    simple, doubt = _read(line)
    try:
        fits = [_fits(pattern, words) for words in _with_git_aliases(simple, git_aliases, [MOST_WORDS])]
    except Unreadable as reason:
        fits, doubt = [_fits(pattern, words) for words in (*simple, *reason.commands)], str(reason)
    if True in fits:
        return True, ""
    doubt = doubt or ("a part of the command is in a variable" if None in fits else "")
    return (None, doubt) if doubt else (False, "")


def fits_itself(pattern: str) -> bool:
    """Return whether a rule of `pattern` would stop that very command, or ask about it."""
    return _fits_line(pattern, pattern, dict)[0] is not False


@lru_cache(maxsize=1)
def _read(line: str) -> tuple[list[list[str]], str]:
    """Return the simple commands of a line, once for all rules, and why others of it are not known, if so."""
    try:
        return commands(line), ""
    except Unreadable as reason:
        return reason.commands, str(reason)


def _with_git_aliases(
    commands_of_line: list[list[str]],
    git_aliases: Callable[[], Mapping[str, str]],
    room: list[int],
    above: tuple[str, ...] = (),
) -> Iterator[list[str]]:
    """Yield each command, and those that it runs if its verb is an alias of git.

    `room` has the number of words that may still be read, and `above` the aliases that lead to the commands.
    """
    for words in commands_of_line:
        yield words
        verb = words[1].lower() if words[0] == "git" and words[1:] else ""
        if verb and verb not in (*_GIT_COMMANDS, *above) and (text := git_aliases().get(verb)):
            line = text[1:] if text.startswith("!") else f"git {text}"
            runs = commands(f"{line} {shlex.join(words[2:])}", len(above), room)
            yield from _with_git_aliases(runs, git_aliases, room, (*above, verb))


def _is_for(rule: EnforcedRule, tool: str) -> bool:
    if rule["tool"]:
        return fnmatchcase(tool, rule["tool"])
    return tool in (EDITORS if rule["path"] else SHELLS)


def _fits(pattern: str, words: Sequence[str]) -> bool | None:
    """Return whether a simple command fits `pattern`; None if that depends on a variable.

    >>> _fits("git push", ["git", "push", "origin"]), _fits("git push*", ["git", "pull"])
    (True, False)
    """
    first, *others = pattern.split()
    wanted = [program_of(first), *others]
    if words[0] != wanted[0] and not any(sign in first for sign in _PATTERN_SIGNS):
        return False
    text, form = " ".join(words), " ".join(wanted)
    if any(sign in pattern for sign in _PATTERN_SIGNS):
        if fnmatchcase(text, form):
            return True
        # A variable may hold any end of the pattern.
        ends = (form[start:] for start in range(len(form))) if UNKNOWN in text else ()
        is_open = text.count(UNKNOWN) > _MOST_UNKNOWN
        is_open = is_open or any(fnmatchcase(text.replace(UNKNOWN, end), form) for end in ends)
    elif words[: len(wanted)] == wanted:
        return True
    else:
        is_open = any(UNKNOWN in word for word in words[: len(wanted)])
        is_open &= all(UNKNOWN in word or word == want for word, want in zip(words, wanted, strict=False))
    return None if is_open else False


def reason(decision: Decision) -> str:
    """Return the sentence that the agent is given with a stopped call."""
    rule = decision.rule
    said_at = f" ({rule['said_at'][:10]})" if rule["said_at"] else ""
    doubt = f" The owner is asked because {decision.doubt}." if decision.doubt else ""
    text = rule["text"] if rule["text"][-1:] in ".!?。！？" else f"{rule['text']}."
    return f"A rule of this project's owner stops this{said_at}: {text}{doubt} To end the rule: aether rule relax {rule['id']}"
