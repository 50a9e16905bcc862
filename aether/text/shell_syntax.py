"""The simple commands that a shell line would run, as words: for rules that must not be passed by quoting or nesting.

Lists, pipes, groups, substitutions, here-documents, aliases, `bash -c`, `eval`, `find -exec` and the programs that start another
(`sudo`, `env`, `timeout`, …) are followed. Nothing is executed or expanded. What cannot be known without running it, such as
a program whose name is in a variable, raises `Unreadable`: a caller that must be sure then asks a person.
"""

from __future__ import annotations

import posixpath
from itertools import dropwhile, pairwise
from typing import NamedTuple

from aether.project import IGNORES_CASE
from aether.text.regex import lazy

# Deeper nesting is not read.
MOST_DEPTH = 12
MOST_CHARS = 50_000
# More words of started programs and aliases are not read: options that are not known have two readings each.
MOST_WORDS = 30_000
# In a word, for a variable or the output of a command.
UNKNOWN = "\0"
# What `find` and `xargs` replace, also within the text of a shell.
_FILLED = "{}"
# In the place of a file, for the output of a command.
_PROCESS = "/dev/fd"
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "coproc"})  # fmt: skip
# What follows them is no command.
_HEADS = frozenset({"for", "select", "function", "case", "in", "esac"})
# Programs that start another, with those of their options that take a word.
_STARTERS = {
    "sudo": "ughpCrtTURD", "doas": "uC", "env": "uCS", "command": "", "builtin": "", "noglob": "", "nocorrect": "", "exec": "a", "nohup": "",
    "nice": "n", "ionice": "cnp", "timeout": "ks", "stdbuf": "ioe", "setsid": "", "xargs": "ILnPEdsa", "time": "fo",
    "chronic": "", "unbuffer": "", "caffeinate": "tw", "parallel": "jaILlNnPSs", "flock": "wE", "strace": "abeEIoOpPsSuUX",
    "busybox": "", "npx": "pw", "uvx": "p", "watch": "nq", "… run": "p", **dict.fromkeys(["bash", "sh", "zsh", "dash", "ksh", "fish", "source", "."], "oO"),
}  # fmt: skip
# They start a program with one of these words before it.
_RUNNERS = frozenset({"uv", "poetry", "pdm", "pipenv", "rye", "bundle"})
_RUN_WORDS = frozenset({"run", "exec"})
# Of these a word comes before the program that they start: a time, a file.
_AFTER_A_WORD = frozenset({"timeout", "flock"})
# They add words of their input to the program that they start.
_ADDING = frozenset({"xargs", "parallel"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
# Programs that run text, with the option before it; those with "" run their words.
_SCRIPTED = {
    **dict.fromkeys(_SHELLS, "-c"), "su": "-c", "env": "-S", "cmd": "/c", "pwsh": "-command", "powershell": "-command", "eval": "", "trap": "",
    "script": "-c",
}  # fmt: skip
# They read commands where they are given no text.
_READERS = _SHELLS | {"su", "source", "."}
_GIT_FLAGS = frozenset(
    "-p -P -h -v --paginate --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs "
    "--glob-pathspecs --noglob-pathspecs --icase-pathspecs --version --help --html-path --man-path --info-path --exec-path".split()
)
_GIT_WORDS = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"}
)
# A setting of git that defines an alias, or a file that may.
_NAMES_A_COMMAND = lazy(r"(?i)(?:--config-env=)?(?:alias|include(?:if)?)\.")
# The variable that gets the number of a file.
_FILE_NUMBER = lazy(r"\d+|\{\w+\}")
# A pattern that may be the name of a command or an option, and not of a file.
_PATTERN_OF_NAME = lazy(r"[\w-]*[\[?*][\w\[\]?*^!-]*")
# The text of a shell in the place of a program: after an option that is not known, or `sudo -s`.
_SHELL_TEXT = lazy(r"[\s;&|]")
# They become several words.
_BRACES = lazy(r"\{[^\s{}'\"`$;&|()<>\\]*(?:,|\.\.)[^\s{}'\"`$;&|()<>\\]*\}")
_ENDS = ";\n&|"
_OPERATORS = ("&&", "||", "|&", ";;&", ";;", ";&", ";", "\n", "&", "|")
_REDIRECTIONS = ("&>>", "<<<", "<<-", "<<", "&>", ">>", ">&", ">|", "<&", "<>", ">", "<")


UNFINISHED = "the command does not end"
"""How the doubt of a line begins that has only the first part of a command."""


class Unreadable(ValueError):
    """A command line that cannot be known without running it; `commands` are those of it that are known."""

    def __init__(self, why: str, commands: list[list[str]] | None = None) -> None:
        super().__init__(why)
        self.commands = commands or []


class _Word(NamedTuple):
    text: str
    """With `UNKNOWN` for a variable."""
    is_pattern: bool = False
    """Whether files are found by it, and the program gets their names."""

    @property
    def is_known(self) -> bool:
        """Whether the program gets this text."""
        return UNKNOWN not in self.text

    @property
    def is_input(self) -> bool:
        """Whether a shell that gets this word reads its commands from a pipe, or from something unknown."""
        return self.text == UNKNOWN or self.text.startswith(("/dev/", "/proc/"))

    @property
    def compared(self) -> str:
        """The text for a rule; a pattern that may be the name of anything is not known."""
        is_name = self.is_pattern and self.text != "*" and _PATTERN_OF_NAME.fullmatch(self.text)
        return UNKNOWN if is_name else self.text.replace(_FILLED, UNKNOWN)


class _Reader:
    """Reads one line; `commands` are the simple commands so far, in the order in which they end."""

    def __init__(self, text: str, depth: int, commands: list[list[_Word]]) -> None:
        if depth > MOST_DEPTH or len(text) > MOST_CHARS:
            raise Unreadable("it is nested too deeply or too long")
        self.text, self.depth, self.commands = text, depth, commands
        self.at = 0
        self.words: list[_Word] = []
        self.documents: list[tuple[str, bool]] = []
        """Ends of the here-documents that begin after this line, and whether their text is expanded."""

    def read(self, end: str = "") -> None:
        """Read to the end of the text, or past `end`, which closes what is being read."""
        while self.at < len(self.text):
            if end and self.text[self.at] == end:
                self.at += 1
                self._finish()
                return
            if not self._skip_blank():
                self._read_part()
        if end:
            raise Unreadable(f"{UNFINISHED}: there is no closing {end}")
        self._finish()

    def _skip_blank(self) -> bool:
        """Skip a blank, a line that goes on, or a comment; return whether there was one."""
        start = self.at
        if self.text[self.at] in " \t\r":
            self.at += 1
        elif self.text.startswith("\\\n", self.at):
            self.at += 2
        elif self.text[self.at] == "#":
            line_end = self.text.find("\n", self.at)
            self.at = len(self.text) if line_end < 0 else line_end
        return self.at > start

    def _read_part(self) -> None:
        """Read a group, a redirection, the end of a command, or a word."""
        char = self.text[self.at]
        if char == "(":
            self._group()
        elif char == ")":
            raise Unreadable("a parenthesis is closed that was not opened")
        elif redirection := self._starting(_REDIRECTIONS):
            if (
                self.words
                and _FILE_NUMBER.fullmatch(self.words[-1].text)
                and self.text[self.at - 1] not in " \t"
            ):
                self.words.pop()  # the number of the file
            self._redirect(redirection)
        elif operator := self._starting(_OPERATORS):
            self.at += len(operator)
            self._finish()
            if operator == "\n":
                self._skip_documents()
        else:
            self.words.append(self._word())

    def _starting(self, signs: tuple[str, ...]) -> str:
        return next((sign for sign in signs if self.text.startswith(sign, self.at)), "")

    def _finish(self) -> None:
        if self.words:
            self.commands.append(self.words)
        self.words = []

    def _group(self) -> None:
        """Read a group, or the parentheses of a function."""
        if self.text.startswith("()", self.at):
            self.at += 2
            self.words = []
            return
        if self.words:
            raise Unreadable("a parenthesis is in the middle of a command")
        self.at += 1
        self._inner(")")

    def _inner(self, end: str) -> None:
        inner = _Reader(self.text, self.depth + 1, self.commands)
        inner.at = self.at
        inner.read(end)
        self.at = inner.at

    def _redirect(self, sign: str) -> None:
        if sign in "<>" and self.text.startswith("(", self.at + 1):  # a process in the place of a file
            self.at += 2
            self._inner(")")
            self.words.append(_Word(_PROCESS))
            return
        self.at += len(sign)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if self.at >= len(self.text) or self.text[self.at] in _ENDS:
            raise Unreadable("a redirection has no file")
        is_quoted = self.text[self.at] in "'\"\\"
        target = self._word()
        if sign in ("<<", "<<-"):
            self.documents.append((target.text, not is_quoted))

    def _skip_documents(self) -> None:
        for mark, is_expanded in self.documents:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    raise Unreadable(f"{UNFINISHED}: a here-document is open")
                line_end = self.text.find("\n", self.at)
                line_end = len(self.text) if line_end < 0 else line_end
                line, self.at = self.text[self.at : line_end], line_end + 1
                if line.strip("\t") == mark:
                    break
                lines.append(line)
            if is_expanded:
                inner = _Reader("\n".join(lines) + '"', self.depth + 1, self.commands)
                while inner.at < len(inner.text):
                    inner._quoted([])
        self.documents = []

    def _word(self) -> _Word:
        parts: list[str] = []
        is_pattern = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;&|()<>":
                break
            is_pattern |= char in "*?["
            if char == "\\":
                parts.append(self.text[self.at + 1 : self.at + 2].replace("\n", ""))
                self.at += 2
            elif char == "'":
                self.at += 1
                parts.append(self._until("'"))
            elif char == '"' or self.text.startswith('$"', self.at):
                self.at = self.text.index('"', self.at) + 1
                self._quoted(parts)
            elif char in "$`":
                self._expansion(parts)
            elif braces := _BRACES.match(self.text, self.at):
                parts.append(UNKNOWN)
                self.at = braces.end()
            else:
                parts.append(char)
                self.at += 1
        return _Word("".join(parts), is_pattern)

    def _quoted(self, parts: list[str]) -> None:
        """Read to the closing double quote."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                parts.append(self.text[self.at + 1 : self.at + 2].replace("\n", ""))
                self.at += 2
            elif char in "$`":
                self._expansion(parts)
            else:
                parts.append(char)
                self.at += 1
        raise Unreadable(f"{UNFINISHED}: a quotation is open")

    def _expansion(self, parts: list[str]) -> None:
        """Read a substitution, a variable, or a lone dollar."""
        is_backquoted = self.text[self.at] == "`"
        self.at += 1
        following = self.text[self.at : self.at + 1]
        if is_backquoted:
            _Reader(self._until("`"), self.depth + 1, self.commands).read()
        elif self.text.startswith("((", self.at):
            self._calculation("))")
        elif following == "(":
            self.at += 1
            self._inner(")")
        elif following == "{":
            self._calculation("}")
        elif following == "'":
            raise Unreadable("a quotation with escapes is not read")
        elif following.isalnum() or following in tuple("_?#@*!$-"):
            self.at += 1
            while self.text[self.at : self.at + 1].isalnum() or self.text[self.at : self.at + 1] == "_":
                self.at += 1
        else:
            parts.append("$")
            return
        parts.append(UNKNOWN)

    def _until(self, end: str) -> str:
        """Return the text before `end`, and go past it."""
        close = self.text.find(end, self.at)
        if close < 0:
            raise Unreadable(f"{UNFINISHED}: a quotation is open")
        start, self.at = self.at, close + len(end)
        return self.text[start:close]

    def _calculation(self, end: str) -> None:
        """Skip a calculation or the name of a variable, in which nothing is run."""
        text = self._until(end)
        if "$(" in text or "`" in text:
            raise Unreadable("a command in a calculation is not read")


def commands(text: str, depth: int = 0, room: list[int] | None = None) -> list[list[str]]:
    r"""Return the words of every simple command in a shell line, the program by its bare name; `UNKNOWN` is in place of variables.

    >>> commands("cd /src && env A=1 /usr/bin/git -C . push origin \"$(git branch)\"")
    [['cd', '/src'], ['git', 'branch'], ['git', 'push', 'origin', '\x00'], ['env', 'A=1', '/usr/bin/git', '-C', '.', 'push', 'origin', '\x00']]
    >>> commands("bash -c 'git push'")
    [['git', 'push'], ['bash', '-c', 'git push']]

    `room` has the number of words that may still be read.

    Raises:
        Unreadable: what would be run cannot be known without running it.
    """
    room = room or [MOST_WORDS]
    found: list[list[_Word]] = []
    doubts: list[Unreadable] = []
    known: list[list[str]] = []
    try:
        _Reader(text, depth, found).read()
    except Unreadable as reason:
        doubts.append(reason)
    aliases: dict[str, str] = {}
    for simple in found:
        try:
            for words in _expanded(_without_keywords(simple), aliases, depth, room):
                known += _unwrapped(words, depth, room)
        except Unreadable as reason:
            doubts.append(reason)
            known += reason.commands
    if doubts:
        raise Unreadable(str(doubts[0]), known)
    return known


def _take(room: list[int], words: list[_Word]) -> None:
    room[0] -= len(words) + 1
    if room[0] <= 0:
        raise Unreadable("it starts too many programs")


def _expanded(words: list[_Word], aliases: dict[str, str], depth: int, room: list[int]) -> list[list[_Word]]:
    """Return a command, and the commands of its alias or of the aliases that it defines, which are added to `aliases`."""
    _take(room, words)
    name = words[0].text if words else ""
    pairs = [word.text.partition("=") for word in words[1:]] if name == "alias" else []
    aliases |= {alias: text for alias, sign, text in pairs if sign}
    runs = [words]
    for alias in [alias for alias, sign, _ in pairs if sign] or [name] * (name in aliases):
        inner: list[list[_Word]] = []
        _Reader(aliases[alias], depth + 1, inner).read()
        if inner and not pairs:
            inner[-1] = [*inner[-1], *words[1:]]
        others = {other: text for other, text in aliases.items() if other != alias}
        for command in inner:
            runs += _expanded(_without_keywords(command), others, depth, room)
    return runs


def _unwrapped(words: list[_Word], depth: int, room: list[int]) -> list[list[str]]:
    """Return the command that `words` run, and those that it is given to run."""
    _take(room, words)
    words = _without_keywords(words)
    if not words or words[0].text in _HEADS:
        return []
    if (
        not words[0].is_known
        or _FILLED in words[0].text
        or (words[0].is_pattern and words[0].text not in ("[", "[["))
    ):
        raise Unreadable("the name of the program is computed")
    name = program_of(words[0].text)
    plain = [name, *(word.compared for word in words[1:])]
    texts = _given(name, words[1:]) if name in _SCRIPTED else []
    if any(not word.is_known for word in texts):
        raise Unreadable(f"what {name} runs is computed")
    scripted = commands(" ".join(word.text for word in texts), depth + 1, room) if texts else []
    starter, given = name, words[1:]
    if name in _RUNNERS or name[:6] == "python":
        run_words = _RUN_WORDS if name in _RUNNERS else ("-m",)
        given = [
            *dropwhile(
                lambda word: word.text not in run_words and (name in _RUNNERS or word.text[:1] == "-"), given
            )
        ]
        starter, given = ("… run", given[1:]) if given and given[0].text in run_words else ("", [])
    programs = _started(starter, given) if starter in _STARTERS else []
    reads_input = name == "su" or "-s" in plain or all(program[0].is_input for program in programs)
    if name in _READERS and not scripted and reads_input:
        raise Unreadable(f"what {name} reads is not known")
    for program in [] if texts and name in _READERS else programs:  # after -c there is no file
        scripted += _unwrapped(program, depth, room)
        if _SHELL_TEXT.search(program[0].text):
            scripted += commands(program[0].text, depth + 1, room)
    if name == "find":
        scripted = _found(words[1:], depth, room)
    if name.startswith("git-"):
        plain = ["git", name.removeprefix("git-"), *plain[1:]]
    return [*scripted, _without_git_options(plain) if plain[0] == "git" else plain]


def program_of(text: str) -> str:
    """Return the bare name of a program, however it is called.

    >>> program_of("/usr/bin/git"), program_of("./deploy.sh")
    ('git', 'deploy.sh')
    """
    name = posixpath.basename(text.replace("\\", "/"))
    return (name.casefold() if IGNORES_CASE else name).removesuffix(".exe")


def _without_keywords(words: list[_Word]) -> list[_Word]:
    """Return a command without the keywords, the name of a function or coprocess, and the variables before it."""
    while words:
        first, is_named = words[0].text, [word.text for word in words[2:3]] == ["{"]
        if first == "function" or (first == "coproc" and is_named):
            words = words[2:]
        elif first in _KEYWORDS or _is_assignment(first):
            words = words[1:]
        else:
            break
    return words


def _started(name: str, words: list[_Word]) -> list[list[_Word]]:
    """Return what a program may start: where an option is not known to take a word, one reading for each case."""
    starts, waiting, seen = set[int](), [0], set[int]()
    while waiting:
        if (at := waiting.pop()) in seen:
            continue
        seen.add(at)
        option = words[at].text if at < len(words) else ""
        if not option.startswith(("-", "+")) or option == "-":
            starts.add(at)
        elif option == "--":
            starts.add(at + 1)
        elif option.startswith("--"):
            waiting += [at + 1] if "=" in option else [at + 1, at + 2]
        else:
            letter_with_word = next(
                (letter for letter in option[1:] if letter in _STARTERS.get(name, "")), ""
            )
            waiting.append(
                at + 2
                if letter_with_word and option.index(letter_with_word, 1) == len(option) - 1
                else at + 1
            )
    skipped = int(name in _AFTER_A_WORD)
    programs = [
        program
        for start in sorted(starts)
        if (program := [*dropwhile(lambda word: word.text.startswith("-"), words[start + skipped :])])
    ]
    if name == "sudo" and not programs and {"-i", "-s"} & {word.text for word in words}:
        raise Unreadable("what the shell of sudo reads is not known")
    if name in _ADDING:
        marks = [word.text[2:] or after.text for word, after in pairwise(words) if word.text[:2] == "-I"]
        programs = [[*_filled(program, *marks[:1]), _Word(UNKNOWN)] for program in programs]
    return programs


def _filled(words: list[_Word], mark: str = _FILLED) -> list[_Word]:
    """Return the words of a program that is started for each file or line: what takes its place is not known."""
    return [
        _Word(UNKNOWN) if word.text == mark else word._replace(text=word.text.replace(mark, _FILLED))
        for word in words
    ]


def _is_assignment(text: str) -> bool:
    name, sign, _ = text.partition("=")
    return bool(sign) and name.removesuffix("+").isidentifier()


def _given(name: str, words: list[_Word]) -> list[_Word]:
    """Return the words of the text that a program runs."""
    if name == "env":
        return _split_string(words)
    if option := _SCRIPTED[name]:
        return _after_option(name, words, option)
    words = words[1:] if words and words[0].text == "--" else words
    return words[:1] if name == "trap" else words


def _split_string(words: list[_Word]) -> list[_Word]:
    """Return what `env -S` splits and runs, with the words after it."""
    for nth, word in enumerate(words):
        text = word.text
        if text.startswith("--split-string") or (text[:1] == "-" != text[1:2] and "S" in text):
            return [
                word._replace(text=text.partition("=" if text.startswith("--") else "S")[2]),
                *words[nth + 1 :],
            ]
    return []


def _after_option(name: str, words: list[_Word], option: str) -> list[_Word]:
    """Return the text after the option of a shell that runs one; that of Windows takes all words, another the first."""
    for nth, word in enumerate(words):
        if option != "-c" and word.text.lower() in (option, "-c"):
            return words[nth + 1 :]
        if option == "-c" and word.text[:1] == "-" != word.text[1:2] and "c" in word.text:
            return [program[0] for program in _started(name, words[nth:])]
    return []


def _found(words: list[_Word], depth: int, room: list[int]) -> list[list[str]]:
    """Return the commands that `find` runs for each file."""
    runs: list[list[str]] = []
    while starts := [
        n for n, word in enumerate(words) if word.text in ("-exec", "-execdir", "-ok", "-okdir")
    ]:
        words = words[starts[0] + 1 :]
        end = next((n for n, word in enumerate(words) if word.text in (";", "+")), len(words))
        runs += _unwrapped(_filled(words[:end]), depth, room)
        words = words[end:]
    return runs


def _without_git_options(words: list[str]) -> list[str]:
    """Return a command of git without the options before its verb."""
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        if rest[0] not in _GIT_FLAGS | _GIT_WORDS and "=" not in rest[0]:
            raise Unreadable(f"the option {rest[0]} of git is not known")
        rest = rest[2:] if rest[0] in _GIT_WORDS else rest[1:]
    settings = words if rest[:1] == ["config"] else words[: len(words) - len(rest)]
    if any(_NAMES_A_COMMAND.match(word) for word in settings):
        raise Unreadable("git is given another name of a command")
    return ["git", *rest]
