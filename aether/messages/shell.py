"""Shell commands: which of them are worth a note, how they are named, and how they ended.

Tests, builds, checks, commits, installs and changes of the world outside are notable; commands that only read are not.
Commands are judged by their first words, segment by segment. Excerpts of an output are redacted before they are cut:
half a secret does not look like one.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

from aether.redact.redact import redact
from aether.text.cleaning import without_escapes
from aether.text.regex import lazy
from aether.tuples import NamedTuple

COMMAND_CHARS = 200
RESULT_CHARS = 240
# A longer command contains a file; its first words say what it does.
_READ_CHARS = 2_000
# All that is looked at of a command with its messages and files.
_WHOLE_CHARS = 20_000
# The outcome is at the end of an output.
_TAIL_CHARS = 4_000
ERROR_CHARS = 600
_ERROR_LINES = 6

# One that is cut off, or never ends, goes on to the end: to look for its end again and again takes minutes.
_QUOTATION = r"""'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*+\\?(?:"|\Z)"""
# An escaped character outside of quotes opens none, nor does a comment.
_MASKED = lazy(rf"\\.|(?<!\S)#[^\n]*|{_QUOTATION}", re.DOTALL)
_REDIRECTS = r"\d?[<>]+&?\s*\S+"
_WORD = lazy(rf"""(?:{_QUOTATION}|[^\s'"])+""", re.DOTALL)
_QUOTE = lazy(r"""['"]""")
# What runs a program of a project's environment.
_RUNS_PROGRAM = (
    r"(?:(?:uv|poetry|pdm|rye|pipenv)\s+run|uvx|pipx\s+run|bundle\s+exec)\s+"
    r"(?:--(?:with|extra|group|python|package|env-file|project|directory)[= ]\S+\s+|-[Cp]\s*\S+\s+|--?[\w-]+\s+)*"
)
_PREFIX = lazy(
    rf"^(?:(?:sudo|time|nohup|exec|env|command|timeout\s+\S+)\s+|{_RUNS_PROGRAM}|[A-Za-z_]\w*=(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"])*\s+|\(\s*)+"
)
# What opens a part of a loop, a condition or a group.
_OPENING = lazy(r"\A(?:(?:if|then|else|elif|while|until|do|!|\{)\s+|\(\s*)+")
_BETWEEN = lazy(r"&&|\|\|?|;|\n|(?<![<>&])&(?![&>])")
_CONTINUED = "\\\n"
_SHELL_TEXT = lazy(rf"(?:\S*/)?(?:ba|z|da)?sh\s+-\w*c ({_QUOTATION})\Z", re.DOTALL, needs=("c '", 'c "'))
# A here-document; where it was read its mark has its number.
_OPENS_DOCUMENT = lazy(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1", needs=("<<",))
_DOCUMENT_MARK = lazy(r"<<\0(\d+)\0", needs=("\0",))
_MOST_DOCUMENTS = 32
_LEADING = lazy(r"\A\s*(?:cd\s+[^\n;&|]+(?:&&|;)\s*)+", needs=("cd",))
_TRAILING = lazy(
    r"(?:\s*(?:\d?>&\d|\d?>\s*/dev/null|\|\s*(?:tail|head|tee|cat|less)\b[^|;&]*))+\s*\Z", needs=(">", "|")
)
# A message given as a here-document; its text is in the answer.
_DOCUMENT = lazy(
    r"""\s*(?:-m|-F|--message|--body|--body-file)?[\s=]*["']?\$\(cat\s*\Z|\s*-F\s+-\s*\Z""",
    needs=("$(cat", "-F"),
)

_GIT = lazy(
    r"(?:\S*/)?git(?: (?:-[Cc] \S+|--(?:git-dir|work-tree|namespace)[= ]\S+|-\S+)){0,8} ([a-z-]+)(.*)",
    re.DOTALL,
)

# Programs that matter whatever they are given.
_RUNNERS = "pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|playwright"
_BUILDERS = "make|cmake|ninja|just|task|gradle|mvn|ant|bazel|rake|dotnet|swift|xcodebuild"
_CHECKERS = "ruff|mypy|black|flake8|pyright|golangci-lint|gofmt|eslint|prettier|tsc|shellcheck|rustfmt|clippy"
_PROGRAMS = frozenset(f"{_RUNNERS}|{_BUILDERS}|{_CHECKERS}".split("|"))
_MATTERS = lazy(
    rf"""(?:
    \S*(?:{_RUNNERS})\b
    | python[\d.]*\s+-m\s+(?:pytest|unittest|build|pip|mypy|ruff|alembic)\b
    | go\s+(?:test|build|vet|install|get|mod|generate)\b
    | cargo\s+(?:test|build|check|clippy|add|install|publish|fmt|bench)\b
    | (?:npm|pnpm|yarn|bun)\s+(?:run|test|install|i|ci|add|build|publish|remove|create|exec)\b | npx\s+\S+
    | (?:{_BUILDERS}|mise\s+run|\./gradlew|{_CHECKERS}|pre-commit\s+run|cargo\s+nextest)\b
    | git\s+(?:-C\s+\S+\s+)?(?:commit|push|merge(?!-)|rebase|cherry-pick|revert|reset|tag\s+\S+|checkout\s+-[bB]|switch\s+-[cC]|stash\s*(?:pop|apply|push|drop)?|pull|clone|init|am|apply|mv|rm|worktree\s+(?:add|remove))\b
    | gh\s+(?:pr|issue|release|workflow|repo|api\s+.*-X)\s*(?:create|merge|close|comment|edit|ready|review|reopen|run|delete|fork)?\b
    | (?:pip[\d.]*|uv|poetry|pipx|conda|gem|composer|brew|apt|apt-get|apk|dnf|yum)\s+(?:install|add|sync|remove|uninstall|lock|upgrade|pip)\b
    | docker\s+(?:build|run|push|compose|exec)\b | docker-compose\b | kubectl\s+(?:apply|delete|create|rollout|scale|patch)\b
    | (?:terraform|helm|ansible-playbook|pulumi|alembic|flyway|systemctl|crontab)\b | (?:python[\d.]*\s+)?\S*manage\.py\s+\w+
    | rm\s+-\w*r | psql\b | sqlite3\b | curl\s.*-X\s*(?:POST|PUT|DELETE|PATCH)
    )""",
    re.VERBOSE,
)
# Files that another command finds are edited in place.
_REWRITES = lazy(
    r"(?:\s-exec(?:dir)?|\bxargs\b.*)\s(?:g?sed|perl)\s+(?:-\w+\s+)*-\w*i", needs=("sed", "perl")
)
# Tools of a language with checks among their verbs, and those verbs: as names of scripts they are checks, too.
_TOOLS = frozenset(
    "mix composer deno flutter dart sbt lein mage stack cabal dune meson zig nx ng vite next turbo hatch".split()
)
_CHECK_VERBS = frozenset("test tests build check lint compile verify format analyze ci".split())
_SHELL_NAMES = frozenset("sh bash zsh dash".split())
_READ_ONLY = lazy(
    r"gh\s+(?:pr|issue|release|workflow|repo|run)\s+(?:view|list|diff|checks|status)\b|gh\s+(?:pr|issue|repo)\s*\Z|git\s+stash\s+list",
    needs=("gh", "git"),
)
_PREPARES = lazy(
    r"(?:python[\d.]*\s+-m\s+)?(?:pip[\d.]*|uv(?:\s+pip)?|poetry|pipx|conda|gem|composer|brew|apt|apt-get|apk|dnf|yum|npm|pnpm|yarn|bun|cargo|bundle|mise)\s+(?:install|i|add|ci|sync|upgrade|update|use)\b|"
    r"go\s+(?:get|install|mod)\b|yarn\s*\Z|(?:docker\s+compose|docker-compose)\s+up\b|docker\s+(?:run|start)\b|brew\s+services\b|systemctl\b|chmod\b|git\s+config\s+(?:-\S+\s+)*\S+\s+\S"
)
_LOOKS = frozenset(
    "ls cat head tail less grep egrep rg ag find fd wc pwd which whereis type echo printf tree stat file du df env sort uniq "
    "cut awk jq test [ true cd sleep ps lsof date diff xargs tr nl strings xxd od man".split()
)
_LOOKING = lazy(
    r"(?:sed\s+-n|command\s+-v|"
    r"git\s+(?:-C\s+\S+\s+)?(?:status|log|diff|show|branch|blame|ls-files|ls-tree|rev-parse|remote|fetch|grep|cat-file|describe|config|reflog|stash\s+list|worktree\s+list|merge-base)|"
    r"gh\s+(?:pr|issue|release|workflow|repo|run)\s+(?:view|list|diff|checks|status)|go\s+(?:doc|list|version|env)|\S+\s+(?:--version|--help|-h|version|help))(?:\s|\Z)",
    needs=("sed", "command", "git", "gh", "go", "-h", "version", "help"),
)
_SUMMARY = lazy(
    r"(?<![\w.])\d+\s+(?:passed|failed|errors?|warnings?|tests?|files?\s+changed|packages?|problems?)\b(?!/)|^(?:ok|FAIL|PASS|BUILD|Success|Finished|Compiled)\b|"
    r"\b(?:all checks passed|no issues|test result|tests?:|successfully|up to date|error:|fatal:)|^\[[^\]]+ [0-9a-f]{7,}\]|->|^https?://",
    re.IGNORECASE,
)
_COMMITTED = lazy(r"\[[^\]]+ [0-9a-f]{7,}\] ", needs=("[",))
# As `go test` says it of each package.
_PACKAGE_OK = lazy(r"^ok\s+(\S*[./]\S*)\s+(?:[\d.]+s|\(cached\))", re.MULTILINE)
_ERROR = lazy(
    r"\b(?:error|failed|failure|fatal|panic|exception|undefined|cannot|can't|could not|unable|denied|refused|not found|no such|"
    r"missing|invalid|expected|unexpected|conflict|timed out|segmentation fault|abort(?:ed)?)\b|\b\w+(?:Error|Exception)\b|^(?:E\s|FAIL|---\s*FAIL|✗|✕|×)|^(?:\[[\w:.-]+\] )?[\w./-]+\.\w+:\d+(?::\d+)?: \S",
    re.IGNORECASE,
)
# Lines of test runners, builds and shells that report a failure, for outputs without an exit code.
_FAILURE = lazy(
    r"^(?:=+ )?(?:\d+ \w+, )*[1-9]\d* (?:failed|failing|failures?|errors?)\b(?:, \d+ \w+)*(?: in \d|\s*=*$)|^Found [1-9]\d* (?:errors?|problems?)\b(?! \(\d+ fixed, 0 )|^FAILED(?: \S+::| \((?:failures|errors)=)|^ERROR \S+::|"
    r"^(?:--- FAIL: |FAIL(?:\t|$))|^test result: FAILED|^Test(?:s:?| Files)\s+[1-9]\d* failed|^npm (?:ERR!|error) |^\S*make(?:\[\d+\])?: \*\*\* |"
    r"^(?:\[[\w:.-]+\] )?(?:[1-9]\d* issues?:|ERROR task failed)$|"
    r"^(?:\S+: )?(?:line \d+: )?\S+: (?:command )?not found$|^\S+: command not found: |^(?:error(?:\[\w+\])?|fatal): |^Traceback \(most recent|^[\w.]*(?:Error|Exception): ",
    re.MULTILINE,
)
# No test ran at all.
_RAN_NOTHING = lazy(
    r"^=* ?no tests ran\b|^=* ?\d+ deselected in\b|\btest result: ok\. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out.*\s*\Z|\A(?:\?\s+\S+\s+\[no test files\]\s*)+\Z",
    re.MULTILINE,
    needs=("no tests ran", "deselected", "0 passed", "no test files"),
)
# A warning of a compiler, and the package that it names above it.
_WARNS = lazy(r":\d+:? warning\b: ?|^# \S+\Z", re.IGNORECASE, needs=("warning", "# "))
# A run that goes on, or that only says what would be run.
_IN_BACKGROUND = lazy(
    r'^Command\b[^\n]{0,60}\bbackground|^Process running with session ID|^\{"chunk_id":[^\n]{0,80}"session_id":',
    re.MULTILINE,
    needs=("background", "running", "session_id"),
)
_REHEARSES = lazy(
    r" (?:--(?:collect-only|co|help|version|dry-run|just-print|list|list-?tests|setup-(?:plan|only)|fixtures|markers|no-run)|-h)(?=\s|\Z)"
    r"|\Amake\b.* -n\b",
    re.IGNORECASE,
    needs=(" --", " -h", " -n"),
)
_INTO_FILE = lazy(r"(?<![<>=-])(?:\d|&)?>{1,2}\s*(?!&|/dev/)[^\s&]", needs=(">",))
# How a command says which code another one had: "exit=1".
_ASKS_CODE = lazy(r"\$\?|\bPIPESTATUS\b|\bpipestatus\b", needs=("$?", "PIPESTATUS", "pipestatus"))
_CODE_LABEL = lazy(r"(?:echo\s+)?([A-Za-z][\w ]*[=:]?\s*)?\$\{?(?:\?|PIPESTATUS|pipestatus)")
_ELSEWHERE = lazy(r" (?:-C|--directory|--prefix|--cwd)[ =](\S+)", needs=(" -C", " --"))
_SEARCHES = lazy(r"(?:rg|grep|egrep|fgrep|ag|git grep)\s")
_NOISE = lazy(
    # Codex says above an output how the command ran.
    r"^(?:Exit code:? \d+|Process exited with code \d+|Original token count: \d+|Script (?:completed|failed)|Wall time:? [\d.]+ seconds|Chunk ID: \w+|Command: /\S*sh -l?c .*|Output:|</?(?:output|returncode)[^>]*>|\s*\^+|[-=_*~\s]+|npm (?:warn|notice).*|\[[\w:-]+\] \$ .*|\(Bash completed with no output\))$",
    re.IGNORECASE,
)


def is_notable(command: str) -> bool:
    """Return whether `command` tests, builds, checks, commits, installs or changes something outside.

    >>> is_notable("cd app && go test ./... 2>&1 | tail -5"), is_notable("git status && ls -la")
    (True, False)
    """
    return any(_matters(part) and not _READ_ONLY.match(part) for part in segments(command))


def prepares(command: str) -> bool:
    """Return whether `command` installs something or sets up what other commands need.

    >>> prepares("pip install -q weasyprint"), prepares("pytest -q")
    (True, False)
    """
    return any(_program(part) not in _PROGRAMS and _PREPARES.match(part) for part in segments(command))


def only_reads(command: str) -> bool:
    """Return whether `command` only reads.

    >>> only_reads("grep -rn TODO src | head"), only_reads("python3 run.py")
    (True, False)
    """
    return all(map(_looks, segments(command)))


def _looks(part: str) -> bool:
    """Return whether one command only looks at what is there."""
    first = next(iter(part.split(None, 1)), "")
    if _REWRITES.search(part):
        return False
    return (first in _LOOKS and part.startswith(first)) or _LOOKING.match(part) is not None


class Part(NamedTuple):
    """One command of a line."""

    text: str
    """Without the assignments, `sudo` and the like before it."""
    then: str
    """What separates it from the next one; empty after the last."""
    documents: tuple[str, ...]
    """The texts of its here-documents."""


@lru_cache(maxsize=64)
def parts_of(command: str) -> tuple[Part, ...]:
    r"""Return the commands in `command`, those of a shell that it calls too; what is quoted separates nothing.

    >>> [part.text for part in parts_of("cd app && sudo make -k; sh -c 'ls | head'")]
    ['cd app', 'make -k', 'ls', 'head']
    >>> parts_of("cat > a <<'E'\none; two\nE\n")[0].documents
    ('one; two',)
    """
    bare, documents = _without_documents(command[:_WHOLE_CHARS])
    bare = bare.replace(_CONTINUED, "  ").strip()
    masked = _masked(bare)
    between = [*_BETWEEN.finditer(masked)]
    starts, ends = [0, *(each.end() for each in between)], [*(each.start() for each in between), len(bare)]
    found: list[Part] = []
    for start, end, then in zip(starts, ends, [*(each[0] for each in between), ""], strict=True):
        text = _PREFIX.sub("", _OPENING.sub("", bare[start:end].strip()))
        inner = _SHELL_TEXT.match(text)
        if inner and (called := parts_of(inner[1][1:-1])):
            found += [*called[:-1], called[-1]._replace(then=then)]
        elif text and not text.startswith("#"):
            numbers = map(int, _DOCUMENT_MARK.findall(text))
            found.append(Part(text, then, tuple(documents[at] for at in numbers if at < len(documents))))
    return tuple(found)


def segments(command: str) -> list[str]:
    """Return the commands in `command` up to its first here-document, as `parts_of` cuts them, and at each line end."""
    read = command[:_READ_CHARS].split("<<", 1)[0]
    return [part.text for part in parts_of(read.replace(_CONTINUED, "\n"))]


def unquoted(command: str) -> str:
    """Return `command` without its here-documents, and with an "x" for each character that is quoted.

    >>> unquoted("grep 'git push' docs | wc -l")
    'grep xxxxxxxxxx docs | wc -l'
    """
    return _masked(_without_documents(command[:_WHOLE_CHARS])[0])


def git_step(part: Part) -> tuple[str, list[str]] | None:
    """Return the verb and the arguments of a command of git; None if it is another one."""
    found = _GIT.match(part.text) if "git " in part.text else None
    if found is None:
        return None
    bare = _QUOTED_OR_REDIRECTED.sub(lambda one: one[1] or " ", found[2])
    return found[1], [_QUOTE.sub("", word) for word in _WORD.findall(bare)]


def git_commands(command: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the verb and the arguments of each command of git in `command`.

    >>> [*git_commands("cd app && git -C lib add a.py && git commit -qm 'Add -> test' >log")]
    [('add', ['a.py']), ('commit', ['-qm', 'Add -> test'])]
    """
    if "git" in command:
        yield from filter(None, map(git_step, parts_of(command)))


def moved_to(place: str | None, part: Part) -> str | None:
    """Return the directory after `part`, a command in `place`: "" is the one at the start, None is not known.

    >>> moved_to("/srv", Part("cd app", "", ())), moved_to("", Part("cd $DIR", "", ())), moved_to("a", Part("ls", "", ()))
    ('/srv/app', None, 'a')
    """
    program, _, where = part.text.partition(" ")
    if program not in ("cd", "pushd"):
        return place
    where = _REDIRECTED.sub("", where).strip().strip(_QUOTES)
    if where in ("", "-") or any(sign in where for sign in "$`*"):
        return None
    joined = (
        where if where.startswith(("/", "~")) else None if place is None else posixpath.join(place, where)
    )
    whole = posixpath.normpath(joined) if joined else None
    return None if whole is None or whole.startswith("..") else "" if whole == "." else whole


def place_of(command: str) -> str:
    """Return the directory that `command` goes to for its last check or change; empty if it names none.

    >>> place_of("cd api && pytest -q"), place_of("make -C lib test"), place_of("pytest && cd api")
    ('api', 'lib', '')
    """
    place: str | None = ""
    found: str | None = ""
    for part in parts_of(command) if "cd " in command or _ELSEWHERE.search(command) else ():
        place = moved_to(place, part)
        if _matters(part.text):
            named = _ELSEWHERE.search(part.text)
            found = moved_to(place, Part(f"cd {named[1]}", "", ())) if named else place
    return found or ""


_MAKE_PLACE = lazy(r"\s-[CfI]\s*\S+")
_MAKE_GOAL = lazy(r"(?<=\s)[a-zA-Z][\w-]*(?=\s|\Z)")


def command_signature(command: str) -> str:
    """Return the name of a command, the same when it is run again with other flags.

    >>> command_signature("cd app && FOO=1 go test ./store -run Add"), command_signature("pytest -x tests/a.py")
    ('go test', 'pytest')
    >>> command_signature("make -k lint")
    'make lint'
    """
    named = _programs(chosen := _chosen(command))
    # `make` does something else with each goal.
    goal = _MAKE_GOAL.search(_MAKE_PLACE.sub("", chosen)) if named == ["make"] else None
    return " ".join([*named, goal[0]] if goal else named)


def command_target(command: str) -> str:
    """Return the target of a command: its signature, then its paths or goals and the tests it selects of them.

    That of a chain joins those of all its checks and changes. Of an install, and of a program that is not known, every operand counts.

    >>> command_target("cd app && pytest -q -n 2 tests/a.py -k add"), command_target("go test ./... -count=1"), command_target("git push -f origin")
    ('pytest tests/a.py -k=add', 'go test', 'git push')
    >>> command_target("go vet ./... | tail && go test ./a"), command_target("./run list --kind x"), command_target("python3 -c 'print(1)'")
    ('go vet && go test a', './run kind list x', 'python3 -')
    """
    chosen = [part for part in segments(command) if _matters(part)] or [_chosen(command)]
    return _AND.join(dict.fromkeys(_target_of(_REDIRECTED.sub(" ", part)) for part in chosen))


def _target_of(chosen: str) -> str:
    if script := _SCRIPT.match(chosen):
        return script[1] + ANY_SCRIPT
    if not _is_known(chosen):
        program, *rest = chosen.split()[:_READ_WORDS] or [""]
        return " ".join([program, *sorted({word.strip(_QUOTES).lstrip("-") for word in rest} - {""})])
    programs = _programs(chosen)
    name = " ".join(programs)
    words = iter(chosen.split()[:_READ_WORDS])
    found: set[str] = set()
    before = ""
    for word in words:
        flag, _, value = word.partition("=")
        if flag in _PICKING or (flag in _PICKING_TESTS and name.endswith("pytest")):
            picked = (value or next(words, "")).strip(_QUOTES)
            found.add("" if picked in programs else f"{flag}={picked}")
        elif not word.startswith("-") and word not in programs:
            valued = before.startswith("-") and "=" not in before and not before[-1].isdigit()
            is_value = valued and before not in _PLAIN_FLAGS
            found.add(_target(word, is_value=is_value, alone=programs[:1]))
        before = word
    targets = sorted(found - {""}, key=lambda each: (each.startswith("-"), each))
    return " ".join([name, *targets])


def covers(later: str, earlier: str, *, whole: bool = False) -> bool:
    """Return whether a run with the target `later` does all that a run with the target `earlier` did.

    The last part of a chain runs after all others succeeded: it counts for the chain, and one of several picked tests for
    all, unless the `whole` is wanted. A script that is part of the command is then another one each time.

    >>> covers("pytest", "pytest tests/a.py"), covers("pytest tests", "pytest tests/a.py::test_b")
    (True, True)
    >>> covers("pytest tests/b.py", "pytest tests/a.py"), covers("pytest tests/a.py", "pytest")
    (False, False)
    >>> covers("go build && pytest", "mypy && pytest a.py"), covers("go build && pytest", "mypy && pytest a.py", whole=True)
    (True, False)
    """
    done, wanted = later.split(_AND), earlier.split(_AND)
    if whole and any(each.endswith(ANY_SCRIPT) for each in wanted):
        return False
    return all(any(_covers(one, each, whole) for one in done) for each in (wanted if whole else wanted[-1:]))


def _covers(later: str, earlier: str, whole: bool) -> bool:
    if not _is_known(earlier):
        return later == earlier
    name, targets, picks = _parts(later)
    other, wanted, picked = _parts(earlier)
    if name != other or (picks and not (picked <= picks if picked and whole else picked & picks)):
        return False
    if not targets:
        return not wanted or name not in _NAMED_TARGETS
    return bool(wanted) and all(any(_holds(one, each) for one in targets) for each in wanted)


def _is_known(part: str) -> bool:
    """Return whether some words of a command name its targets: those of an install and of an unknown program all count."""
    # None of the programs that are known by their name prepares.
    return _program(part) in _PROGRAMS or (_matters(part) and not _PREPARES.match(part))


def _chosen(command: str) -> str:
    """Return the segment of `command` that is its purpose."""
    parts = segments(command)
    chosen = next((part for part in parts if _matters(part)), None)
    return chosen or next((part for part in parts if not _looks(part)), command)


def _matters(part: str) -> bool:
    # The name of the program decides most, and compiles nothing.
    if _program(part) in _PROGRAMS or _checks(part) or _REWRITES.search(part):
        return True
    return _MATTERS.match(part) is not None


def _checks(part: str) -> bool:
    """Return whether a command is a check of a tool that does more than that, or a script that is named like one."""
    words = [word for word in part.split(None, 4)[:4] if not word.startswith("-") and word != "run"]
    name, *given = (words[1:] if words and words[0] in _SHELL_NAMES else words) or [""]
    directory, _, name = name.rpartition("/")
    if name in _TOOLS:
        return bool(given) and given[0].rpartition(":")[2] in _CHECK_VERBS
    said = name.removesuffix(".sh").replace("-", "_").split("_")
    return (name.endswith(".sh") and not _CHECK_VERBS.isdisjoint(said)) or (
        bool(directory) and name in _CHECK_VERBS
    )


def _program(part: str) -> str:
    return part.partition(" ")[0]


def _programs(chosen: str) -> list[str]:
    words = [word for word in chosen.split()[:6] if not word.startswith("-")]
    kept = 3 if words[:1] == ["gh"] or words[:2] in _WITH_VERB else 2
    return words[:1] if words and words[0] in _ALONE else words[:kept]


def _target(word: str, *, is_value: bool, alone: list[str]) -> str:
    """Return `word` as the path, test or goal that it names; empty if it names none."""
    bare = word.strip(_QUOTES)
    if not _PATH.search(bare) and (is_value or not _ALONE.issuperset(alone) or not _GOAL.fullmatch(bare)):
        return ""
    return bare.removesuffix("...").rstrip("/").removeprefix("./").removeprefix(".")


def _parts(aim: str) -> tuple[str, list[str], set[str]]:
    """Return the program of a target, its paths and goals, and each of the tests that it picks."""
    name = " ".join(_programs(aim))
    rest = aim[len(name) :].split()
    picks = {
        f"{flag}={one}"
        for flag, _, picked in (word.partition("=") for word in rest if word.startswith("-"))
        for one in picked.split("|")
    }
    return name, [word for word in rest if not word.startswith("-")], picks


def _holds(outer: str, inner: str) -> bool:
    """Return whether the target `outer` is `inner`, or a directory, file or class that holds it."""
    holder, held = (f"/{each.replace('::', '/')}/" for each in (outer, inner))
    return holder in held or holder.endswith(held)


_ALONE = frozenset("pytest make tox nox mypy eslint tsc jest vitest gofmt black prettier".split())
_WITH_VERB = [each.split() for each in (
    "mise run", "npm run", "pnpm run", "yarn run", "bun run", "docker compose", "git stash", "git worktree",
)]  # fmt: skip
# A program that is part of the command: another one may do anything else.
_SCRIPT = lazy(
    r"(\S*(?:python[\d.]*|node|ruby|perl|bash|zsh|sh|jq))(?:\s+-(?:\w*[ce]\b.*)?|\s*)\Z", re.DOTALL
)
ANY_SCRIPT = " -"
_AND = " && "
# Programs that do not run everything without a target.
_NAMED_TARGETS = frozenset({"make"})
# Flags that select some of the tests of a target.
_PICKING = frozenset("-run -t -g --grep --testNamePattern --tests --filter".split())
_PICKING_TESTS = frozenset("-k -m".split())
# Flags without a value.
_PLAIN_FLAGS = frozenset(
    "-k -x -q -qq -v -vv -s -l -B -i -w --lf --quiet --verbose --fix --check --watch --exitfirst".split()
)
_PATH = lazy(r"/|::|\.\w{1,5}\Z|\A\.\Z")
_GOAL = lazy(r"[A-Za-z][\w.-]*")
_QUOTES = "'\"`"
# More words of a command are data.
_READ_WORDS = 64
_REDIRECTED = lazy(_REDIRECTS)
_QUOTED_OR_REDIRECTED = lazy(f"({_QUOTATION})|{_REDIRECTS}", re.DOTALL)


def short_command(command: str) -> str:
    """Return `command` as a note shows it: its first line, without directory changes and output filters.

    Of one that is too long, the first parts are left out: how it came out is mostly said of the last.

    >>> short_command("cd /srv/app && make test 2>&1 | tail -20")
    'make test'
    >>> short_command(f"go vet ./{'a' * 200} && go test ./a && ls -la")
    'go test ./a && ls -la'
    """
    bare = _LEADING.sub("", command[:_READ_CHARS]).strip() or command.strip()
    line = bare.split("<<", 1)[0].split("\n", 1)[0]
    line = _DOCUMENT.sub("", _TRAILING.sub("", line)).strip() or line.strip()
    if len(line) > COMMAND_CHARS:
        line = _last_parts(line)
    return line if len(line) <= COMMAND_CHARS else line[: COMMAND_CHARS - 1].rstrip() + "…"


def _last_parts(line: str) -> str:
    """Return `line` from the first part on from which it is short enough, if one matters of those that are left."""
    parts = parts_of(line)
    begins = 0
    for at, part in enumerate(parts[1:], 1):
        begins = max(0, line.find(parts[at - 1].text, begins)) + len(parts[at - 1].text)
        found = line.find(part.text, begins) if parts[at - 1].then in ("&&", ";") else -1
        if found > 0 and len(line) - found <= COMMAND_CHARS:
            return line[found:] if any(_matters(one.text) for one in parts[at:]) else line
    return line


# How the object starts in which a script of Codex shows what a command printed.
_CHUNK = '{"chunk_id":'


def printed(output: str) -> str:
    r"""Return `output` with what a command printed in place of the object in which a script of Codex shows it.

    >>> printed('{"chunk_id":"a1","exit_code":1,"output":"FAIL\\n"}\ndone')
    'FAIL\n\ndone'
    """
    if _CHUNK not in output:
        return output
    lines = output.split("\n")
    for at, line in enumerate(lines):
        if line.startswith(_CHUNK):
            try:
                lines[at] = str(json.loads(line)["output"])
            except (ValueError, KeyError, RecursionError):
                continue  # it was cut
    return "\n".join(lines)


def outcome_line(output: str) -> str:
    r"""Return the line of `output` with the outcome: a summary if there is one, else the last line that is no compiler's warning.

    >>> outcome_line("collecting…\n12 passed in 0.4s\nbye"), outcome_line("# a/lua\na.c:25:18: warning: null character [-Wnull]")
    ('12 passed in 0.4s', '')
    """
    lines = [line for line in _lines(printed(output)[-_TAIL_CHARS:]) if not _WARNS.search(line)]
    summaries = [line for line in lines if _COMMITTED.match(line)][:1] or [
        line for line in lines if _SUMMARY.search(line)
    ]
    chosen = redact(summaries[-1] if summaries else (lines[-1] if lines else ""))
    return chosen if len(chosen) <= RESULT_CHARS else chosen[: RESULT_CHARS - 1] + "…"


def outcome_of(command: str, output: str) -> str:
    r"""Return the line of `output` with the outcome of the `command` that `short_command` shows; "" if it may be of another.

    >>> outcome_of("make build && ls -la out", "-rwxr-xr-x 1 me 12 out"), outcome_of("make build\n./run a", "a: 3"), outcome_of("make build", "built")
    ('', '', 'built')
    >>> outcome_of("make app\nfor q in a b; do ./app $q; done", "5 13.6 test/a.py"), outcome_of("make test; cat log", "12 passed in 0.4s\nthe log")
    ('', '12 passed in 0.4s')
    >>> tested = "ok app/api 0.1s\nok app/web (cached)"
    >>> outcome_of("go test ./...", tested)
    'ok'
    """
    if _IN_BACKGROUND.search(output[:_READ_CHARS]):
        return ""
    line, parts = outcome_line(output), parts_of(command)
    # The last of several packages is no outcome of all, nor is their number: behind a filter or a poll there may be more.
    packages = {*_PACKAGE_OK.findall(output)} if _PACKAGE_OK.match(line) else set()
    if len(packages) > 1 and not reports_failure("", output):
        return "ok, as far as shown" if any(part.then == "|" for part in parts) else "ok"
    if _SUMMARY.search(line) or _COMMITTED.match(line):
        return line
    heads = [part.text for at, part in enumerate(parts) if not at or parts[at - 1].then != "|"]
    last = heads[-1] if heads else command
    return line if " ".join(last.split()[:2]) in short_command(command) and not only_reads(last) else ""


def reports_failure(command: str, output: str) -> bool:
    r"""Return whether the end of the output of `command` reports a failure; a command that only reads never fails.

    >>> reports_failure("pytest -q", "F..\n1 failed, 2 passed in 0.4s"), reports_failure("cat log", "1 failed in 0.3s")
    (True, False)
    >>> reports_failure("foo", "bash: foo: command not found"), reports_failure("pytest", "0 failed, 3 passed")
    (True, False)
    """
    if only_reads(command):
        return False
    return bool(_FAILURE.search("\n".join(_lines(printed(output)[-_TAIL_CHARS:]))))


def hides_failure(command: str, output: str) -> bool:
    r"""Return whether a check failed although the exit code is that of something behind it.

    >>> hides_failure("pytest -q | tail -3", "1 failed in 0.4s"), hides_failure("cat run.log | tail", "1 failed in 0.4s")
    (True, False)
    >>> hides_failure("mypy src || true", "Found 1 error in 1 file"), hides_failure("make; echo rc=$?", "rc=2")
    (True, True)
    """
    return is_notable(command) and _hides_code(command) and _says_failure(command, output)


def is_undecided(command: str, output: str) -> bool:
    r"""Return whether the answer to `command`, which did not fail, shows no outcome of its checks.

    One may go on in the background, only list what it would do, or write into a file with another command behind it.

    >>> is_undecided("make test", "Command running in background with ID: b1"), is_undecided("pytest", "3 passed")
    (True, False)
    >>> is_undecided("pytest --co", "3 tests collected"), is_undecided("make >log; wc -l log", "3 log")
    (True, True)
    """
    if _IN_BACKGROUND.search(output[:_READ_CHARS]) or _RAN_NOTHING.search(output[-_TAIL_CHARS:]):
        return True
    checks = [part for part in parts_of(command) if _matters(part.text)]
    if not checks:
        return False
    if checks[-1].then == "&" or all(_REHEARSES.search(_masked(part.text)) for part in checks):
        return True
    unseen = _INTO_FILE.search(_masked(checks[-1].text)) and checks[-1].then not in ("", "&&")
    return bool(unseen) and not any(map(_SUMMARY.search, _lines(printed(output)[-_TAIL_CHARS:])))


def _hides_code(command: str) -> bool:
    """Return whether a command runs after a check whatever its exit code is, or filters any command that matters."""
    parts = parts_of(command)
    for at, part in enumerate(parts[:-1]):
        if _matters(part.text):
            after = {each.then for each in parts[at:-1]}
            if "|" in after or (after - {"&&"} and _is_check(part.text)):
                return True
    return False


def _is_check(part: str) -> bool:
    return _program(part) not in ("git", "gh", "rm", "curl") and not _PREPARES.match(part)


def _says_failure(command: str, output: str) -> bool:
    """Return whether an output reports a failure, or the exit code of the only command that was asked for its code."""
    if reports_failure(command, output):
        return True
    asked = _CODE_LABEL.search(command) if len(_ASKS_CODE.findall(command)) == 1 else None
    if asked is None:
        return False
    lines = [line.strip() for line in output[-_READ_CHARS:].strip().split("\n")]
    label = re.escape((asked[1] or "").strip())
    # Without a label only the last line can be the code.
    return any(re.fullmatch(rf"{label}\s*[1-9]\d{{0,2}}", line) for line in (lines if label else lines[-1:]))


def is_empty_search(command: str, output: str) -> bool:
    """Return whether `command` searched and printed nothing, although its exit code is that of a failure.

    >>> is_empty_search("cd app && rg 'a|b' src", "Exit code 1"), is_empty_search("rg x", "rg: x: No such file")
    (True, False)
    """
    return bool(_SEARCHES.match(_LEADING.sub("", command).lstrip())) and not _lines(output[:_TAIL_CHARS])


def error_excerpt(output: str) -> str:
    r"""Return the lines of `output` that report an error, shortened in the middle.

    >>> error_excerpt("Exit code 1\nrunning\nmain.go:3: undefined: foo")
    'main.go:3: undefined: foo'
    """
    output = printed(output)
    head = output[:_TAIL_CHARS]
    lines = _lines(head if len(output) <= _TAIL_CHARS else head + "\n" + output[-_TAIL_CHARS:])
    chosen = list(dict.fromkeys(line for line in lines if _ERROR.search(line))) or lines[-3:]
    if len(chosen) > _ERROR_LINES:
        chosen = [*chosen[: _ERROR_LINES - 2], "…", *chosen[-2:]]
    shown = redact("\n".join(chosen)).split("\n")
    text = "\n".join(line if len(line) <= RESULT_CHARS else line[: RESULT_CHARS - 1] + "…" for line in shown)
    return text if len(text) <= ERROR_CHARS else text[: ERROR_CHARS - 1] + "…"


@lru_cache(maxsize=64)
def _masked(bare: str) -> str:
    """Return `bare` with an "x" for each character that is quoted, and a space for each of a comment."""
    return _MASKED.sub(_mask, bare) if "'" in bare or '"' in bare else bare


def _mask(found: re.Match[str]) -> str:
    first = found[0][0]
    return found[0] if first == "\\" else (" " if first == "#" else "x") * len(found[0])


def _without_documents(command: str) -> tuple[str, list[str]]:
    """Return `command` with marks for its here-documents, and their texts."""
    texts: list[str] = []
    at = 0
    for _ in range(_MOST_DOCUMENTS if "<<" in command else 0):
        head = _OPENS_DOCUMENT.search(command, at)
        line = command.find("\n", head.end()) if head else -1
        if head is None or line < 0:
            break
        at = head.end()
        if end := re.compile(rf"\n[ \t]*{head[2]}\b").search(command, line):
            mark = f"<<\0{len(texts)}\0"
            texts.append(command[line + 1 : end.start()])
            command = command[: head.start()] + mark + command[at:line] + command[end.end() :]
            at = head.start() + len(mark)
    return command, texts


def _lines(output: str) -> list[str]:
    stripped = (line.strip().strip("=").strip() for line in without_escapes(output).split("\n"))
    return [line for line in stripped if line and not _NOISE.match(line)]
