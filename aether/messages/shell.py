"""Shell commands: which of them are worth a note, how they are named, and how they ended.

Tests, builds, checks, commits, installs and changes of the world outside are notable; commands that only read are not.
Commands are judged by their first words, segment by segment; how they ended by the exit code that the host reports, else by
the counts that a runner prints last. Excerpts of an output are redacted before they are cut: half a secret does not
look like one.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from functools import lru_cache
from typing import NamedTuple

from aether.redact.redact import redact
from aether.text.cleaning import without_escapes
from aether.text.regex import lazy

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
# The host's frame above an output.
_FRAME_CHARS = 400

# One that is cut off, or never ends, goes on to the end: to look for its end again and again takes minutes.
_QUOTATION = r"""'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*+\\?(?:"|\Z)"""
# An escaped character outside of quotes opens none, nor does a comment.
_MASKED = lazy(rf"\\.|(?<!\S)#[^\n]*|{_QUOTATION}", re.DOTALL)
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
# A here-document; where it was read its mark has its number.
_OPENS_DOCUMENT = lazy(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1")
_MARK = "<<\0"
_MOST_DOCUMENTS = 32
_LEADING = lazy(r"\A\s*(?:cd\s+[^\n;&|]+(?:&&|;)\s*)+")
_TRAILING = lazy(r"(?:\s*(?:\d?>&\d|\d?>\s*/dev/null|\|\s*(?:tail|head|tee|cat|less)\b[^|;&]*))+\s*\Z")
# A message given as a here-document; its text is in the answer.
_DOCUMENT = lazy(r"""\s*(?:-m|-F|--message|--body|--body-file)?[\s=]*["']?\$\(cat\s*\Z|\s*-F\s+-\s*\Z""")
_REDIRECTED = lazy(r"\d?[<>]+&?\s*\S+")

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
_SHELL_NAMES = frozenset("sh bash zsh dash".split())
_SCRIPTED = frozenset("python node ruby perl bash zsh sh jq".split())
# Every operand of an install counts, as of an unknown program.
_INSTALLS = frozenset("install add i ci get sync upgrade update remove uninstall use".split())
# A run that only says what would be run.
_REHEARSES = frozenset(
    "--collect-only --co --help -h --version --dry-run --just-print --list --list-tests --setup-plan --fixtures --no-run".split()
)
_LOOKS = frozenset(
    "ls cat head tail less grep egrep fgrep rg ag find fd wc pwd which whereis type echo printf tree stat file du df env sort uniq "
    "cut awk jq test [ true cd sleep ps lsof date diff tr nl strings xxd od man".split()
)
_LOOKING = lazy(
    r"(?:sed\s+-n|command\s+-v|"
    r"git\s+(?:-C\s+\S+\s+)?(?:status|log|diff|show|branch|blame|ls-files|ls-tree|rev-parse|remote|fetch|grep|cat-file|describe|config|reflog|stash\s+list|worktree\s+list|merge-base)|"
    r"gh\s+(?:pr|issue|release|workflow|repo|run)\s+(?:view|list|diff|checks|status)|go\s+(?:doc|list|version|env)|\S+\s+(?:--version|--help|-h|version|help))(?:\s|\Z)"
)
_SUMMARY = lazy(
    r"(?<![\w.])\d+\s+(?:passed|failed|errors?|warnings?|tests?|files?\s+changed|packages?|problems?)\b(?!/)|^(?:ok|FAIL|PASS|BUILD|Success|Finished|Compiled)\b|"
    r"\b(?:all checks passed|no issues|test result|tests?:|successfully|up to date|error:|fatal:)|^\[[^\]]+ [0-9a-f]{7,}\]|->|^https?://",
    re.IGNORECASE,
)
# A count of a test runner or checker.
_FAILED_COUNT = lazy(
    r"(?:^|[,:;] |\bFound )[1-9]\d* (?:failed|failing|failures?|errors?)\b(?! \(\d+ fixed)", re.IGNORECASE
)
_ERROR = lazy(
    r"\b(?:error|failed|failure|fatal|panic|exception|undefined|cannot|can't|could not|unable|denied|refused|not found|no such|"
    r"missing|invalid|expected|unexpected|conflict|timed out|segmentation fault|abort(?:ed)?)\b|\b\w+(?:Error|Exception)\b|^(?:E\s|FAIL|---\s*FAIL|✗|✕|×)|^(?:\[[\w:.-]+\] )?[\w./-]+\.\w+:\d+(?::\d+)?: \S",
    re.IGNORECASE,
)
_EXIT_CODE = lazy(r"^(?:Exit code:?|Process exited with code) (-?\d+)|\"exit_code\":\s*(-?\d+)", re.MULTILINE)
_IN_BACKGROUND = ("Command running in background", "Process running with session ID", '"session_id":')
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
    return any(_matters(part) and not _looks(part) for part in segments(command))


def only_reads(command: str) -> bool:
    """Return whether `command` only reads.

    >>> only_reads("grep -rn TODO src | head"), only_reads("python3 run.py")
    (True, False)
    """
    return all(map(_looks, segments(command)))


def _looks(part: str) -> bool:
    """Return whether one command only looks at what is there."""
    return bool(_LOOKS.intersection(part.split(None, 1)[:1]) or _LOOKING.match(part))


class Part(NamedTuple):
    """One command of a line."""

    text: str
    """Without the assignments, `sudo` and the like before it."""
    then: str
    """What separates it from the next one; empty after the last."""
    documents: tuple[str, ...]
    """The texts of its here-documents."""


@lru_cache(maxsize=1_024)
def parts_of(command: str) -> tuple[Part, ...]:
    r"""Return the commands in `command`, those of a shell that it calls too; what is quoted separates nothing.

    >>> [part.text for part in parts_of("cd app && sudo make -k; sh -c 'ls | head'")]
    ['cd app', 'make -k', 'ls', 'head']
    >>> parts_of("cat > a <<'E'\none; two\nE\n")[0].documents
    ('one; two',)
    """
    bare, documents = _without_documents(command[:_WHOLE_CHARS])
    bare = bare.replace(_CONTINUED, "  ").strip()
    between = [*_BETWEEN.finditer(_masked(bare))]
    starts, stops = [0, *(sign.end() for sign in between)], [*(sign.start() for sign in between), len(bare)]
    parts: list[Part] = []
    for start, end, then in zip(starts, stops, [*(sign[0] for sign in between), ""], strict=True):
        text = _PREFIX.sub("", _OPENING.sub("", bare[start:end].strip()))
        if called := parts_of(_called(text)) if _called(text) else ():
            parts += [*called[:-1], called[-1]._replace(then=then)]
        elif text and not text.startswith("#"):
            marks = (mark.partition("\0")[0] for mark in text.split(_MARK)[1:])
            numbers = [int(mark) for mark in marks if mark.isdecimal()]
            parts.append(
                Part(text, then, tuple(documents[index] for index in numbers if index < len(documents)))
            )
    return tuple(parts)


def _called(text: str) -> str:
    """Return the command that a shell is called with, as in `sh -c 'make test'`."""
    program, _, arguments = text.partition(" ")
    option, _, script = arguments.lstrip().partition(" ")
    is_shell = program.rpartition("/")[2] in _SHELL_NAMES and option[:1] == "-" and option[-1:] == "c"
    script = script.strip() if is_shell else ""
    return script[1:-1] if len(script) > 1 and script[0] == script[-1] and script[0] in "'\"" else ""


def segments(command: str) -> list[str]:
    """Return the commands in `command` up to its first here-document, as `parts_of` cuts them, and at each line end."""
    head = command[:_READ_CHARS].split("<<", 1)[0]
    return [part.text for part in parts_of(head.replace(_CONTINUED, "\n"))]


def git_step(part: Part) -> tuple[str, list[str]] | None:
    """Return the verb and the arguments of a command of git; None if it is another one.

    >>> git_step(Part("git -C lib commit -qm 'Add -> test' >log", "", ()))
    ('commit', ['-qm', 'Add -> test'])
    """
    if "git " not in part.text:
        return None
    try:
        words = shlex.split(part.text)
    except ValueError:  # a quotation without an end
        words = part.text.split()
    if words[:1] != ["git"] and not words[0].endswith("/git"):
        return None
    words = [word for word in words[1:] if word[:1] not in "<>" and word[1:2] != ">"]
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in ("-C", "-c", "--git-dir", "--work-tree") else 1 :]
    return (words[0], words[1:]) if words else None


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
    path = posixpath.normpath(joined) if joined else None
    return None if path is None or path.startswith("..") else "" if path == "." else path


def place_of(command: str) -> str:
    """Return the directory that `command` goes to for its last check or change; empty if it names none.

    >>> place_of("cd api && pytest -q"), place_of("make -C lib test"), place_of("pytest && cd api")
    ('api', 'lib', '')
    """
    place: str | None = ""
    last: str | None = ""
    for part in parts_of(command):
        place = moved_to(place, part)
        if _matters(part.text):
            words = part.text.replace("=", " ").split()
            options = (index for index, word in enumerate(words[:-1]) if word in _PLACES)
            index = next(options, -1)
            last = place if index < 0 else moved_to(place, Part(f"cd {words[index + 1]}", "", ()))
    return last or ""


def command_signature(command: str) -> str:
    """Return the name of a command, the same when it is run again with other flags.

    >>> command_signature("cd app && FOO=1 go test ./store -run Add"), command_signature("pytest -x tests/a.py")
    ('go test', 'pytest')
    >>> command_signature("make -k lint")
    'make lint'
    """
    programs = _programs(chosen := _chosen(command))
    # `make` does something else with each goal.
    goals = _targets(chosen, programs)[:1] if programs == ["make"] else []
    return " ".join([*programs, *goals])


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
    words = chosen.split()[:_READ_WORDS] or [""]
    if words[0].rpartition("/")[2].rstrip("0123456789.") in _SCRIPTED and (
        len(words) == 1 or words[1] == "-" or (words[1][:1] == "-" and words[1][-1] in "ce")
    ):
        return words[0] + ANY_SCRIPT
    if not _is_known(chosen):
        return " ".join([*words[:1], *sorted({word.strip(_QUOTES).lstrip("-") for word in words[1:]} - {""})])
    programs = _programs(chosen)
    return " ".join([*programs, *_targets(chosen, programs)])


def _targets(chosen: str, programs: list[str]) -> list[str]:
    """Return the paths and goals that a command names, and after them the tests that it picks."""
    words = iter(chosen.split()[:_READ_WORDS])
    targets: set[str] = set()
    has_goals = not _ALONE.isdisjoint(programs[:1])
    for word in words:
        flag, _, value = word.partition("=")
        bare = word.strip(_QUOTES)
        if flag in _PICKING or (flag in _PICKING_TESTS and programs[-1:] == ["pytest"]):
            picked = (value or next(words, "")).strip(_QUOTES)
            targets.add("" if picked in programs else f"{flag}={picked}")
        elif flag in _PLACES or (has_goals and flag in _VALUED):
            next(words if not value else iter(()), "")
        elif (
            word[:1] != "-"
            and word not in programs
            and (_is_path(bare) or (has_goals and bare[:1].isalpha()))
        ):
            targets.add(bare.removesuffix("...").rstrip("/").removeprefix("./").removeprefix("."))
    return sorted(targets - {""}, key=lambda target: (target.startswith("-"), target))


def _is_path(word: str) -> bool:
    suffix = word.rpartition(".")[2] if "." in word else ""
    return "/" in word or "::" in word or word == "." or (suffix.isalnum() and len(suffix) <= _SUFFIX_CHARS)


def covers(later: str, earlier: str, *, whole: bool = False) -> bool:
    """Return whether a run with the target `later` does all that a run with the target `earlier` did.

    The last part of a chain runs after all others succeeded: it counts for the chain, unless the `whole` is wanted. A script
    that is part of the command is then another one each time.

    >>> covers("pytest", "pytest tests/a.py"), covers("pytest tests", "pytest tests/a.py::test_b")
    (True, True)
    >>> covers("pytest tests/b.py", "pytest tests/a.py"), covers("pytest tests/a.py", "pytest")
    (False, False)
    >>> covers("go build && pytest", "mypy && pytest a.py"), covers("go build && pytest", "mypy && pytest a.py", whole=True)
    (True, False)
    """
    later_parts, earlier_parts = later.split(_AND), earlier.split(_AND)
    if whole and any(part.endswith(ANY_SCRIPT) for part in earlier_parts):
        return False
    return all(
        any(_covers(part, earlier) for part in later_parts)
        for earlier in (earlier_parts if whole else earlier_parts[-1:])
    )


def _covers(later: str, earlier: str) -> bool:
    if not _is_known(earlier):
        return later == earlier
    programs = _programs(earlier)
    later_words, earlier_words = ({*target.split()} - {*programs} for target in (later, earlier))
    if _programs(later) != programs or (programs == ["make"] and not later_words and earlier_words):
        return False
    targets, picks = (
        {word for word in later_words if word[0] != "-"},
        {word for word in later_words if word[0] == "-"},
    )
    return picks <= earlier_words and (
        not targets
        or (
            bool(earlier_words - picks)
            and all(
                any(_holds(target, inner) for target in targets) for inner in earlier_words if inner[0] != "-"
            )
        )
    )


def _holds(outer: str, inner: str) -> bool:
    """Return whether the target `outer` is `inner`, or a directory, file or class that holds it."""
    holder, target_path = (f"/{target.replace('::', '/')}/" for target in (outer, inner))
    return holder in target_path or holder.endswith(target_path)


def _is_known(part: str) -> bool:
    """Return whether some words of a command name its targets: those of an install and of an unknown program all count."""
    words = part.split(None, 4)
    return words[:1] != [] and (
        words[0] in _PROGRAMS or (_matters(part) and _INSTALLS.isdisjoint(words[1:4]))
    )


def _chosen(command: str) -> str:
    """Return the segment of `command` that is its purpose."""
    parts = segments(command)
    chosen = next((part for part in parts if _matters(part)), None)
    return chosen or next((part for part in parts if not _looks(part)), command)


def _matters(part: str) -> bool:
    # The name of the program decides most, and compiles nothing.
    return not _PROGRAMS.isdisjoint(part.split(None, 1)[:1]) or _MATTERS.match(part) is not None


def _programs(chosen: str) -> list[str]:
    words = [word for word in chosen.split()[:6] if not word.startswith("-")]
    most = 3 if words[:1] == ["gh"] or words[:2] in _WITH_VERB else 2
    return words[:1] if words and words[0] in _ALONE else words[:most]


_ALONE = frozenset("pytest make tox nox mypy eslint tsc jest vitest gofmt black prettier".split())
_WITH_VERB = [names.split() for names in (
    "mise run", "npm run", "pnpm run", "yarn run", "bun run", "docker compose", "git stash", "git worktree",
)]  # fmt: skip
# How the target of a program ends that is part of the command: another one may do anything else.
ANY_SCRIPT = " -"
_AND = " && "
# Flags that select some of the tests of a target.
_PICKING = frozenset("-run -t -g --grep --testNamePattern --tests --filter".split())
_PICKING_TESTS = frozenset("-k -m".split())
# Flags with a value, of programs that take goals.
_VALUED = frozenset("-p -n -o -c -f -I -W".split())
# Options that name the directory of a run.
_PLACES = frozenset({"-C", "--directory", "--prefix", "--cwd"})
_SUFFIX_CHARS = 5
_QUOTES = "'\"`"
# More words of a command are data.
_READ_WORDS = 64


def short_command(command: str) -> str:
    """Return `command` as a note shows it: its first line, without directory changes and output filters.

    >>> short_command("cd /srv/app && make test 2>&1 | tail -20")
    'make test'
    """
    bare = _LEADING.sub("", command[:_READ_CHARS]).strip() or command.strip()
    line = bare.split("<<", 1)[0].split("\n", 1)[0]
    line = _DOCUMENT.sub("", _TRAILING.sub("", line)).strip() or line.strip()
    return line if len(line) <= COMMAND_CHARS else line[: COMMAND_CHARS - 1].rstrip() + "…"


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
    for index, line in enumerate(lines):
        if line.startswith(_CHUNK):
            try:
                lines[index] = str(json.loads(line)["output"])
            except (ValueError, KeyError, RecursionError):
                continue  # it was cut
    return "\n".join(lines)


def exit_code(output: str) -> int | None:
    r"""Return the exit code that a host names in the frame of an output; None without one.

    >>> exit_code("Exit code 2\nno rule"), exit_code("3 passed")
    (2, None)
    """
    code = _EXIT_CODE.search(output[:_FRAME_CHARS])
    return int(code[1] or code[2]) if code else None


def outcome_line(output: str) -> str:
    r"""Return the line of `output` with the outcome: a summary if there is one, else the last line that is no compiler's warning.

    >>> outcome_line("collecting…\n12 passed in 0.4s\nbye"), outcome_line("# a/lua\na.c:25:18: warning: null character [-Wnull]")
    ('12 passed in 0.4s', '')
    """
    lines = [
        line
        for line in _lines(printed(output)[-_TAIL_CHARS:])
        if not ("warning:" in line or line.startswith("# "))
    ]
    summaries = [line for line in lines if _SUMMARY.search(line)]
    chosen = redact((summaries or lines or [""])[-1])
    return chosen if len(chosen) <= RESULT_CHARS else chosen[: RESULT_CHARS - 1] + "…"


def outcome_of(command: str, output: str) -> str:
    r"""Return the line of `output` with the outcome of the `command` that `short_command` shows; "" if it may be of another.

    >>> outcome_of("make build && ls -la out", "-rwxr-xr-x 1 me 12 out"), outcome_of("make build\n./run a", "a: 3"), outcome_of("make build", "built")
    ('', '', 'built')
    >>> outcome_of("make test; cat log", "12 passed in 0.4s\nthe log"), outcome_of("go test ./...", "ok app/api 0.1s\nok app/web (cached)")
    ('12 passed in 0.4s', 'ok')
    """
    if _is_in_background(output):
        return ""
    line, parts = outcome_line(output), parts_of(command)
    # The last of several packages is no outcome of all.
    if line.startswith("ok ") and not reports_failure(command, output):
        return "ok" if len([line_ for line_ in _lines(output) if line_.startswith("ok ")]) > 1 else line
    if _SUMMARY.search(line):
        return line
    heads = [part.text for index, part in enumerate(parts) if not index or parts[index - 1].then != "|"]
    last = heads[-1] if heads else command
    return line if " ".join(last.split()[:2]) in short_command(command) and not only_reads(last) else ""


def reports_failure(command: str, output: str) -> bool:
    r"""Return whether the output of `command` reports a failure: by its exit code, else by the count of a runner.

    A command that only reads never fails.

    >>> reports_failure("pytest -q", "F..\n1 failed, 2 passed in 0.4s"), reports_failure("cat log", "1 failed in 0.3s")
    (True, False)
    >>> reports_failure("make", "Exit code 2\nno rule"), reports_failure("pytest", "0 failed, 3 passed")
    (True, False)
    """
    if only_reads(command):
        return False
    code = exit_code(output)
    if code or (code == 0 and not _hides_code(command)):
        return bool(code)
    return bool(_FAILED_COUNT.search(outcome_line(output)))


def is_undecided(command: str, output: str) -> bool:
    r"""Return whether the answer to `command`, which did not fail, shows no outcome of its checks.

    One may go on in the background, only list what it would do, or leave its exit code to another command and print nothing.

    >>> is_undecided("make test", "Command running in background with ID: b1"), is_undecided("pytest", "3 passed")
    (True, False)
    >>> is_undecided("pytest --co", "3 tests collected"), is_undecided("make >log; wc -l log", "3 log")
    (True, True)
    """
    if _is_in_background(output):
        return True
    checks = [part for part in parts_of(command) if _matters(part.text)]
    if not checks:
        return False
    if checks[-1].then == "&" or all(
        not _REHEARSES.isdisjoint(_masked(part.text).split()) for part in checks
    ):
        return True
    lines = _lines(printed(output)[-_TAIL_CHARS:])
    return _hides_code(command) and not any(map(_SUMMARY.search, lines))


def _is_in_background(output: str) -> bool:
    return any(sign in output[:_FRAME_CHARS] for sign in _IN_BACKGROUND)


def _hides_code(command: str) -> bool:
    """Return whether the exit code of `command` may be that of something behind its last check."""
    parts = parts_of(command)
    last = max((index for index, part in enumerate(parts) if _matters(part.text)), default=len(parts))
    return any(part.then != "&&" for part in parts[last:-1])


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
    excerpt = redact("\n".join(chosen)).split("\n")
    text = "\n".join(
        line if len(line) <= RESULT_CHARS else line[: RESULT_CHARS - 1] + "…" for line in excerpt
    )
    return text if len(text) <= ERROR_CHARS else text[: ERROR_CHARS - 1] + "…"


@lru_cache(maxsize=64)
def _masked(bare: str) -> str:
    """Return `bare` with an "x" for each character that is quoted, and a space for each of a comment."""
    return _MASKED.sub(_mask, bare) if "'" in bare or '"' in bare else bare


def _mask(match: re.Match[str]) -> str:
    first = match[0][0]
    return match[0] if first == "\\" else (" " if first == "#" else "x") * len(match[0])


def _without_documents(command: str) -> tuple[str, list[str]]:
    """Return `command` with marks for its here-documents, and their texts."""
    texts: list[str] = []
    index = 0
    for _ in range(_MOST_DOCUMENTS if "<<" in command else 0):
        head = _OPENS_DOCUMENT.search(command, index)
        line = command.find("\n", head.end()) if head else -1
        if head is None or line < 0:
            break
        index = head.end()
        if end := re.compile(rf"\n[ \t]*{head[2]}\b").search(command, line):
            mark = f"{_MARK}{len(texts)}\0"
            texts.append(command[line + 1 : end.start()])
            command = command[: head.start()] + mark + command[index:line] + command[end.end() :]
            index = head.start() + len(mark)
    return command, texts


def _lines(output: str) -> list[str]:
    stripped = (line.strip().strip("=").strip() for line in without_escapes(output).split("\n"))
    return [line for line in stripped if line and not _NOISE.match(line)]
