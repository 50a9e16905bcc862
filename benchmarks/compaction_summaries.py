"""What is left of a coding session after its compaction: by the host's model, by a simple rule, and by aether?

Data: the real compactions of Claude Code transcripts in ../shared/data/claude_code, with the summaries that its model
wrote, as listed in _compaction_index.json. For each, the messages since the compaction before it are made into a text
of at most as many tokens as the model's summary has:

host       the summary of Claude Code's model, as it is
baseline   the names of the edited files, all messages of the user, and the last texts of the model and results of
           tools, verbatim, the newest first as far as there is room
aether     the summary of all these messages without a model: facts, and prose of the extractive backend

The host alone also saw its own earlier summary. The same rules judge all three, and share no code with aether. They
match words: who restates something in quite other words gets nothing, so they favour what is verbatim, which the
baseline and aether are and the host is not; two measures ask for single words, which favours nobody.

user_sentences   of the words in the user's own sentences, those in sentences that are in the text as they are, but for
                 white space, case and marks at the ends; own are sentences of three plain words or more that make up
                 two thirds, in the first 1,000 characters of a message: the rest is a paste of logs, JSON or code
user_words       of the different words of four letters or more in these, those that are anywhere in the text
files            of the files in calls of editing tools, those whose name is in the text
changed          of the names of functions, types and tests that an edit defines and its old text does not, those that
                 are in the text
checks           of the test, lint, build and type checks run by the shell, each by its program and what it runs: those
                 of whose last run a line, with the two after it, names the command or its kind and says rightly whether
                 it passed
plan             of the entries of the last plan or task list that are not completed, those of whose words (three
                 letters or more) one line has four fifths
late_errors      of the failed calls in the last quarter of the messages, each by its command or tool and file, after
                 which none of the same succeeded: those of whose line with the error three fifths of the words are in a
                 line with the two after it; refusals of the user and searches without a hit are no errors

Compactions whose transcript is not in the folder are counted and left out.

Usage: python benchmarks/compaction_summaries.py [COMPACTION]        (with one, what each text lacks of it)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import report
from compaction_files import EDITORS, Compaction, compactions, edited, summarised

from aether.tokens.estimate import estimate

SAID_CHARS = 1_000
SENTENCE_WORDS = 3
PLAN_SHARE, ERROR_SHARE = 0.8, 0.6
LATE = 0.75
OWN_SHARE = 2 / 3
PLAIN_WORD = re.compile(r"[\"'(*_]*[A-Za-z]+(?:['’-][A-Za-z]+)*[.,:;!?)\"'*_…]*")
MARKS = " .,;:!?\"'`*_()[]"
# Programs that check, by kind; with the word after one that runs many things.
CHECKS = {
    "test": r"(?:go|cargo|npm|yarn|pnpm|make|just|mise run|npm run|bun) test\S*|pytest\b|jest\b|vitest\b",
    "lint": r"(?:mise run|npm run|make|just) (?:lint|fmt)\S*|ruff\b|eslint\b|golangci-lint\b|gofmt\b|go vet|cargo clippy",
    "build": r"(?:go|cargo|make|npm run|mise run|docker) build\b|tsc\b|mypy\b",
}
KIND_WORDS = {"test": r"\btests?\b", "lint": r"\blint", "build": r"\bbuil[dt]|\bcompil"}
FAILED = re.compile(
    r"^(?:FAIL\b|--- FAIL|FAILED|E\s{2}|error[:\[])|\b[1-9]\d* (?:failed|errors?|issues?)\b|: error: |^\S+\.\w+:\d+:\d+: ",
    re.MULTILINE,
)
ERROR_LINE = re.compile(
    r"error|fail|panic|exception|undefined|cannot|not found|no such|denied|invalid", re.IGNORECASE
)
SAYS_PASSED = re.compile(
    r"pass|\bok\b|succe|green|clean|✓|✅|\b0 (?:issues|errors|failed)|fixed|works", re.IGNORECASE
)
SAYS_FAILED = re.compile(r"fail|error|✗|❌|broke|undefined|red\b|[1-9]\d* issues", re.IGNORECASE)
DEFINES = re.compile(
    r"\b(?:def|class|function|func|fn|type|interface|struct|enum)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{2,})"
)
REFUSED = re.compile(r"doesn't want to proceed|\[Request interrupted|tool use was rejected")
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
INJECTED = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
SYSTEMS = ("host", "baseline", "aether")
# With fewer there is nothing to compare.
LEAST = {
    "user_sentences": 500, "user_words": 300, "files": 50, "changed": 50, "checks": 15, "plan": 5, "late_errors": 5,
}  # fmt: skip


class Call(NamedTuple):
    """One call of a tool with its result."""

    tool: str
    given: dict
    output: str
    failed: bool
    late: bool

    @property
    def key(self) -> str:
        """What is done again by a call of the same key."""
        command = self.given.get("command", "")
        if command:
            return " ".join(check[1] for check in checks_in(command)) or " ".join(command.split()[:3])
        return f"{self.tool} {self.given.get('file_path') or self.given.get('skill') or ''}"


class Share(NamedTuple):
    """How much of what a measure asks for is there."""

    got: int
    of: int
    lacks: list[str]


# What happened, read from the messages.
def texts_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or () if block.get("type") == "text")


def said_by_user(each: Compaction) -> list[str]:
    """Return the messages of the user, the arguments of slash commands among them."""
    found = []
    for raw in each.raws:
        if raw["role"] != "user":
            continue
        text = INJECTED.sub("", texts_of(raw["content"])).strip()
        arguments = ARGUMENTS.search(text)
        if arguments:
            text = arguments[1].strip()
        if text and not text.startswith(("<", "[Request interrupted")):
            found.append(text)
    return found


def calls_of(each: Compaction) -> list[Call]:
    results: dict[str, dict] = {}
    asked: list[tuple[int, dict]] = []
    for at, raw in enumerate(each.raws):
        for block in raw["content"] if isinstance(raw["content"], list) else ():
            if block.get("type") == "tool_use":
                asked.append((at, block))
            elif block.get("type") == "tool_result":
                results[block["tool_use_id"]] = block
    found = []
    for at, block in asked:
        result = results.get(block["id"])
        if result is None:
            continue
        output = texts_of(result.get("content"))
        checks = any(checks_in(block["input"].get("command", "")))
        failed = bool(result.get("is_error")) or bool(checks and FAILED.search(output))
        if not REFUSED.search(output):
            found.append(Call(block["name"], block["input"], output, failed, at >= LATE * len(each.raws)))
    return found


def checks_in(command: Any) -> list[tuple[str, str]]:
    """Return kind and name of the checks that a command runs."""
    parts = re.split(r"&&|\|\||[;|\n]", command) if isinstance(command, str) else []
    return [
        (kind, match[1])
        for part in parts
        for kind, pattern in CHECKS.items()
        if (match := re.match(rf"\s*(?:\w+=\S+\s+)*({pattern})", part))
    ]


def sentences(text: str) -> Iterator[str]:
    for part in re.split(r"\n|(?<=[.!?])\s+", text[:SAID_CHARS]):
        plain = sum(bool(PLAIN_WORD.fullmatch(word)) for word in part.split())
        if plain >= max(SENTENCE_WORDS, OWN_SHARE * len(part.split())):
            yield part.strip()


def open_plan(calls: list[Call]) -> list[str]:
    entries: dict[str, tuple[str, str]] = {}
    for call in calls:
        if call.tool == "TodoWrite":
            entries = {one["content"]: (one["content"], one["status"]) for one in call.given["todos"]}
        elif call.tool == "TaskCreate" and not call.failed:
            number = re.search(r"#(\d+)", call.output)
            entries[number[1] if number else str(len(entries) + 1)] = (call.given["subject"], "pending")
        elif call.tool == "TaskUpdate" and call.given.get("status") and call.given["taskId"] in entries:
            entries[call.given["taskId"]] = (entries[call.given["taskId"]][0], call.given["status"])
    return [text for text, status in entries.values() if status in {"pending", "in_progress"}]


def definitions(calls: list[Call]) -> list[str]:
    found: dict[str, None] = {}
    for call in calls:
        if call.tool in EDITORS and not call.failed:
            edits = call.given.get("edits") or [call.given]
            for edit in edits:
                old = edit.get("old_string") or ""
                new = edit.get("new_string") or edit.get("content") or edit.get("new_source") or ""
                found |= dict.fromkeys(
                    name for name in DEFINES.findall(new) if name not in DEFINES.findall(old)
                )
    return list(found)


def late_errors(calls: list[Call]) -> list[str]:
    """Return the line with the error of each late failure that was not solved."""
    left: dict[str, str] = {}
    for call in calls:
        left.pop(call.key, None)
        lines = [line.strip() for line in re.sub(r"</?tool_use_error>", "", call.output).split("\n")]
        lines = [line for line in lines if line and not line.startswith("Exit code")]
        if call.failed and call.late and lines:
            left[call.key] = next(filter(ERROR_LINE.search, lines), lines[-1])[:200]
    return list(left.values())


# What is there of it.
def bare(text: str) -> str:
    return " ".join(text.lower().split()).strip(MARKS)


def words(text: str, least: int) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) >= least}


def share(wanted: list[str], is_there: Callable[[str], object]) -> Share:
    lacks = [one for one in wanted if not is_there(one)]
    return Share(len(wanted) - len(lacks), len(wanted), lacks)


def measured(each: Compaction, text: str) -> dict[str, Share]:
    """Return what of one compaction's messages is in `text`, by measure."""
    calls = calls_of(each)
    lines = [line for line in text.split("\n") if line.strip()]
    threes = ["\n".join(lines[at : at + 3]) for at in range(len(lines))]
    own = list(dict.fromkeys(one for said in said_by_user(each) for one in sentences(said)))
    plain, all_words, names = bare(text), words(text, 4), set(re.findall(r"\w+", text))
    lacking = [one for one in own if bare(one) not in plain]
    number = sum(len(one.split()) for one in own)

    def says(entry: str, among: list[str], least: float) -> bool:
        asked = words(entry, 3)
        return any(len(asked & words(one, 3)) >= least * len(asked) for one in among)

    last_runs = {check: call for call in calls for check in checks_in(call.given.get("command", ""))}

    def reports(check: str) -> bool:
        kind, name = check.split(": ", 1)[0].split(" ", 1)
        failed = last_runs[kind, name].failed
        about = re.compile(f"{re.escape(name)}|{KIND_WORDS[kind]}", re.IGNORECASE)
        return any(
            about.search(one) and (SAYS_FAILED if failed else SAYS_PASSED).search(one) for one in threes
        )

    return {
        "user_sentences": Share(number - sum(len(one.split()) for one in lacking), number, lacking),
        "user_words": share(sorted(set().union(*(words(one, 4) for one in own))), all_words.__contains__),
        "files": share(edited(each.raws), lambda path: path.rpartition("/")[2] in text),
        "changed": share(definitions(calls), names.__contains__),
        "checks": share(
            [f"{kind} {name}: {'failed' if one.failed else 'passed'}" for (kind, name), one in last_runs.items()],
            reports,
        ),
        "plan": share(open_plan(calls), lambda entry: says(entry, lines, PLAN_SHARE)),
        "late_errors": share(late_errors(calls), lambda line: says(line, threes, ERROR_SHARE)),
    }  # fmt: skip


# The three texts.
def baseline(each: Compaction, most: int) -> str:
    """Return the edited files, the user's messages, and the last texts and results, as far as `most` tokens go."""
    files = "Edited files:\n" + "\n".join(edited(each.raws))
    said, last = said_by_user(each), list(spoken(each))

    def made(users: int, others: int) -> str:
        return "\n".join([files, *said[len(said) - users :], *last[len(last) - others :]])

    users = most_that_fit(len(said), lambda number: estimate(made(number, 0)) <= most)
    others = most_that_fit(len(last), lambda number: estimate(made(users, number)) <= most)
    whole = made(users, others)
    if users < len(said) or others == len(last):
        return whole
    # The head of the text before the last ones uses the rest of the room.
    rest = last[-others - 1]
    chars = most_that_fit(len(rest), lambda number: estimate(f"{whole}\n{rest[:number]}") <= most)
    return f"{whole}\n{rest[:chars]}"


def most_that_fit(most: int, fits: Callable[[int], bool]) -> int:
    """Return the greatest number up to `most` that fits, if all less than one that fits do."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def spoken(each: Compaction) -> Iterator[str]:
    """Yield the texts of the model and the results of tools, in order."""
    for raw in each.raws:
        if raw["role"] == "assistant" and texts_of(raw["content"]).strip():
            yield texts_of(raw["content"])
        for block in raw["content"] if isinstance(raw["content"], list) else ():
            if block.get("type") == "tool_result" and texts_of(block.get("content")).strip():
                yield texts_of(block["content"])


def texts_for(each: Compaction) -> dict[str, str]:
    most = estimate(each.summary)
    return {
        "host": each.summary,
        "baseline": baseline(each, most),
        "aether": summarised(each.lines, most),
    }


def main() -> None:
    found, absent = compactions()
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    rows = []
    for each in found:
        if only not in each.name:
            continue
        texts = texts_for(each)
        sizes = {name: estimate(text) for name, text in texts.items()}
        assert max(sizes.values()) <= sizes["host"], "the same room for all"
        shares = {name: measured(each, text) for name, text in texts.items()}
        rows.append({"compaction": each.name, "tokens": sizes, "shares": shares})
    if only:
        for row in rows:
            for name, shares in row["shares"].items():
                print(f"\n== {row['compaction']}, {name}")
                for measure, one in shares.items():
                    print(f"{measure} {one.got} of {one.of}; lacks: {' | '.join(one.lacks)}"[:1500])
        return
    measures = list(rows[0]["shares"]["host"])
    together = {
        measure: {
            "of": sum(row["shares"]["host"][measure].of for row in rows),
            **{name: sum(row["shares"][name][measure].got for row in rows) for name in SYSTEMS},
        }
        for measure in measures
    }
    assert all(one["of"] >= LEAST[measure] for measure, one in together.items()), (
        "each measure has something to ask"
    )
    each_row = [
        {
            "compaction": row["compaction"],
            "tokens": row["tokens"],
            **{
                measure: {"of": row["shares"]["host"][measure].of}
                | {name: row["shares"][name][measure].got for name in SYSTEMS}
                for measure in measures
            },
        }
        for row in rows
    ]
    report.write(
        __file__,
        {
            "question": (__doc__ or "").splitlines()[0],
            "compactions": len(rows), "transcripts_absent": absent, "together": together, "each": each_row,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
