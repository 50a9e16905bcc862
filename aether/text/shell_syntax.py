"""The simple commands that a shell line would run, as words: for rules that must not be passed by quoting or nesting.

Lists, pipes, groups, substitutions, here-documents, `bash -c`, `eval`, `find -exec` and the programs that start another
(`sudo`, `env`, `timeout`, …) are followed. Nothing is executed or expanded. What cannot be known without running it, such as
a program whose name is in a variable, raises `Unreadable`: a caller that must be sure then asks a person.
"""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from aether.text.regex import lazy

# Deeper nesting is not read.
MOST_DEPTH = 12
MOST_CHARS = 50_000
# In a word, for a variable or the output of a command.
UNKNOWN = "\0"
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "coproc"})  # fmt: skip
# What follows them is no command.
_HEADS = frozenset({"for", "select", "function", "case", "in", "esac"})
# Programs that start another, with those of their options that take a word.
_STARTERS = {
    "sudo": "ughpCrtTUR", "doas": "uC", "env": "uCS", "command": "", "builtin": "", "exec": "a", "nohup": "",
    "nice": "n", "ionice": "cnp", "timeout": "ks", "stdbuf": "ioe", "setsid": "", "xargs": "IiLlnPEdsa", "time": "fo",
    "chronic": "", "unbuffer": "", "caffeinate": "tw", "parallel": "jaILlNnPSs",
}  # fmt: skip
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
# Programs that run text, with the option before it; those with "" run their words.
_SCRIPTED = {**dict.fromkeys(_SHELLS, "c"), "env": "S", "eval": "", "watch": "", "trap": ""}
_GIT_WORDS = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source"}
)
# They become several words.
_BRACES = lazy(r"\{[^\s{}'\"`$;&|()<>\\]*(?:,|\.\.)[^\s{}'\"`$;&|()<>\\]*\}")
_ENDS = ";\n&|"
_OPERATORS = ("&&", "||", "|&", ";;&", ";;", ";&", ";", "\n", "&", "|")
_REDIRECTIONS = ("&>>", "<<<", "<<-", "<<", "&>", ">>", ">&", ">|", "<&", "<>", ">", "<")


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
            raise Unreadable(f"there is no closing {end}")
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
            if self.words and self.words[-1].text.isdigit() and self.text[self.at - 1].isdigit():
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
            self.words.append(_Word("/dev/fd"))
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
                    raise Unreadable("a here-document does not end")
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
            elif char == '"':
                self.at += 1
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
                parts.append(self.text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char in "$`":
                self._expansion(parts)
            else:
                parts.append(char)
                self.at += 1
        raise Unreadable("a quotation does not end")

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
            raise Unreadable("a quotation does not end")
        start, self.at = self.at, close + len(end)
        return self.text[start:close]

    def _calculation(self, end: str) -> None:
        """Skip a calculation or the name of a variable, in which nothing is run."""
        text = self._until(end)
        if "$(" in text or "`" in text:
            raise Unreadable("a command in a calculation is not read")


def commands(text: str, depth: int = 0) -> list[list[str]]:
    r"""Return the words of every simple command in a shell line, the program by its bare name; `UNKNOWN` is in place of variables.

    >>> commands("cd /src && env A=1 /usr/bin/git -C . push origin \"$(git branch)\"")
    [['cd', '/src'], ['git', 'branch'], ['git', 'push', 'origin', '\x00']]
    >>> commands("bash -c 'git push'")
    [['git', 'push'], ['bash', '-c', 'git push']]

    Raises:
        Unreadable: what would be run cannot be known without running it.
    """
    found: list[list[_Word]] = []
    doubts: list[Unreadable] = []
    known: list[list[str]] = []
    try:
        _Reader(text, depth, found).read()
    except Unreadable as reason:
        doubts.append(reason)
    for simple in found:
        try:
            known += _unwrapped(simple, depth)
        except Unreadable as reason:
            doubts.append(reason)
            known += reason.commands
    if doubts:
        raise Unreadable(str(doubts[0]), known)
    return known


def _unwrapped(words: list[_Word], depth: int) -> list[list[str]]:
    """Return the command that `words` run, and those that it is given to run."""
    while words and (words[0].text in _KEYWORDS or _is_assignment(words[0].text)):
        words = words[1:]
    if not words or words[0].text in _HEADS:
        return []
    if not words[0].is_known or (words[0].is_pattern and words[0].text not in ("[", "[[")):
        raise Unreadable("the name of the program is computed")
    name = posixpath.basename(words[0].text.replace("\\", "/")).removesuffix(".exe")
    plain = [name, *(word.text for word in words[1:])]
    scripted = _script(name, words[1:], depth) if name in _SCRIPTED else []
    if name in _STARTERS:
        after = _after_options(words[1:], _STARTERS[name], skips_number=name == "timeout")
        return [*scripted, *_unwrapped(after, depth)] or [plain]
    if name in _SCRIPTED:
        return [*scripted, plain]
    if name == "find":
        return [*_found(words[1:], depth), plain]
    return [_without_git_options(plain) if name == "git" else plain]


def _is_assignment(text: str) -> bool:
    name, sign, _ = text.partition("=")
    return bool(sign) and name.removesuffix("+").isidentifier()


def _after_options(words: list[_Word], with_word: str, *, skips_number: bool) -> list[_Word]:
    """Return what follows the options of a program that starts another."""
    while words and words[0].text.startswith("-"):
        option = words[0].text
        takes = len(option) == len("-x") and option[1] in with_word
        words = words[2:] if takes else words[1:]
        if option == "--":
            break
    return words[1:] if skips_number else words


def _script(name: str, words: list[_Word], depth: int) -> list[list[str]]:
    """Return the commands that a program is given as text."""
    option = _SCRIPTED[name]
    if option:
        places = [
            nth for nth, word in enumerate(words) if word.text.startswith("-") and word.text.endswith(option)
        ]
        texts = words[places[0] + 1 : places[0] + 2] if places else []
    else:
        texts = _after_options(words, "nq", skips_number=False)
        texts = texts[:1] if name == "trap" else texts
    if any(not word.is_known for word in texts):
        raise Unreadable(f"what {name} runs is computed")
    return commands(" ".join(word.text for word in texts), depth + 1)


def _found(words: list[_Word], depth: int) -> list[list[str]]:
    """Return the commands that `find` runs for each file."""
    runs: list[list[str]] = []
    while starts := [
        n for n, word in enumerate(words) if word.text in ("-exec", "-execdir", "-ok", "-okdir")
    ]:
        words = words[starts[0] + 1 :]
        ends = [n for n, word in enumerate(words) if word.text in (";", "+")]
        runs += _unwrapped(words[: ends[0]] if ends else words, depth)
    return runs


def _without_git_options(words: list[str]) -> list[str]:
    """Return a command of git without the options before its verb."""
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _GIT_WORDS else rest[1:]
    return ["git", *rest]
