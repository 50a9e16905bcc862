"""Every command: its help, its example run for real, its JSON against its schema, its place in the reference."""

from __future__ import annotations

import json
import re
import shlex
from functools import lru_cache
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator

from aether.cli.former import FORMER_SPELLINGS, spelled_now
from aether.cli.json_results import RESULTS
from aether.cli.main import cli, main
from aether.compat.compactctl import compactctl
from aether.schemas.derive import json_schema
from tests.cli import stage
from tests.tables import rows

ROOT = Path(__file__).parents[2]
COMMANDS = list(stage.commands(groups=True))
# Verbs whose first sentence does not begin with a verb in its plain form would be found here by eye;
# these endings show the usual slips.
NOT_IMPERATIVE = re.compile(r"^(?:\w+ing|\w+ed|The|A|This)\b")


@lru_cache
def schema_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(RESULTS[name], name))


def require(name: str, text: str) -> None:
    value = json.loads(text)
    found = [f"{error.json_path}: {error.message}"[:300] for error in schema_of(name).iter_errors(value)]
    assert found == []


def test_help_starts_with_an_imperative_sentence_and_has_an_example():
    for name, command in COMMANDS:
        first = (command.help or "").splitlines()[0]

        assert first.endswith("."), name
        assert len(first) <= 60, name
        assert first[0].isupper(), name
        assert not NOT_IMPERATIVE.match(first), name
        assert all(line.startswith(name) for line in stage.examples(command)), name
        assert stage.examples(command), name


def test_every_command_that_a_message_or_a_page_names_is_there():
    """The page of former spellings is left out: it names what is no longer one."""
    known = dict(COMMANDS)
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name != "compat.md"]
    named = {
        (path.name, named[1], named[2] or "")
        for path in (*(ROOT / "aether").rglob("*.py"), *pages, ROOT / "README.md")
        for named in re.finditer(r"[\"`]aether ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", path.read_text("utf-8"))
    }

    assert len(named) > 100
    assert [
        name
        for name in sorted(named)
        if name[1] not in known
        or (name[2] and isinstance(known[name[1]], click.Group) and f"{name[1]} {name[2]}" not in known)
    ] == []


def test_every_option_has_help_that_is_a_phrase():
    for name, command in COMMANDS:
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, (name, option.name)
                assert not option.help.endswith("."), (name, option.help)


def test_the_list_of_nouns_says_what_each_noun_says_of_itself():
    from aether.cli.main import NOUNS

    for noun, (_, line) in NOUNS.items():
        command = cli.get_command(click.Context(cli), noun)
        assert command is not None
        assert (command.help or "").startswith(line), noun


def test_every_command_takes_the_common_options():
    for name, command in COMMANDS:
        given = {option for parameter in command.params for option in parameter.opts}
        assert given >= {"--home", "--json", "--quiet"}, name


def test_every_command_is_in_the_reference():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    assert [name for name, _ in COMMANDS if f"\n## aether {name}\n" not in text] == []


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_the_example_runs(name, here, vocabulary, capsys):
    (command,) = (found for known, found in COMMANDS if known == name)
    stage.run_before(name, capsys)

    for line in stage.examples(command):
        assert main(stage.words_of(line, here)) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", stage.NAMES)
def test_json_is_one_value_of_the_commands_own_shape(name, here, vocabulary, capsys):
    (command,) = (found for known, found in COMMANDS if known == name)
    stage.run_before(name, capsys)

    for line in stage.examples(command):
        code = main([*stage.words_of(line, here), "--json"])

        shown = capsys.readouterr()
        assert code == 0, shown.err
        require(name, shown.out)


@pytest.mark.parametrize("former", FORMER_SPELLINGS)
def test_a_former_spelling_leads_to_a_command_of_today_and_its_options(former):
    now = spelled_now(former, [])
    name = next(words for length in (2, 1) if (words := " ".join(now[:length])) in stage.NAMES)
    (command,) = (command for words, command in stage.commands() if words == name)
    options = {option for parameter in command.params for option in parameter.opts}

    assert former not in stage.NAMES
    assert {word for word in now if word.startswith("-")} <= options


@rows(
    ("line", "now"),
    [
        ("context mode talk developer", "context set talk --mode developer"),
        ("archive search webhook retries --limit 3", "archive list --search 'webhook retries' --limit 3"),
        ("snapshot restore latest --yes", "snapshot --restore latest --yes"),
    ],
)
def test_the_words_after_a_former_spelling_keep_their_places(line, now):
    former, *words = next(
        (" ".join(parts[:2]), *parts[2:])
        for parts in [line.split()]
        if " ".join(parts[:2]) in FORMER_SPELLINGS
    )

    assert spelled_now(former, words) == shlex.split(now)


def test_the_common_options_work_before_the_noun_and_after_the_verb(here, capsys):
    capsys.readouterr()
    for words in (["--json", "memory", "show"], ["memory", "--json", "show"], ["memory", "show", "--json"]):
        assert main(words) == 0
        require("memory show", capsys.readouterr().out)


# These work without a home, or make one.
WITHOUT_A_HOME = {
    "init", "demo", "completion", "tokens fetch", "tokens count", "compact check", "claude install",
    "claude uninstall", "claude status", "statusline", "mcp", "hook", "backup list", "backup restore",
    "share join", "schema", "install", "uninstall",
}  # fmt: skip


def test_without_a_home_a_command_says_so_on_one_line(here, capsys, tmp_path):
    for name, command in stage.commands():
        if name in WITHOUT_A_HOME:
            continue
        words = stage.words_of(stage.examples(command)[0], here)
        capsys.readouterr()

        code = main([*words, "--home", str(tmp_path / "nowhere"), "--json"])

        shown = capsys.readouterr()
        assert (code, shown.err.count("\n"), shown.err[:7]) == (3, 1, "Error: "), name
        assert 'Run "aether init"' in shown.err, name
        require("error", shown.out)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--json", "--xyzzy"], "No such option '--xyzzy'."),
        (["--json", "--home"], "Option '--home' requires an argument."),
    ],
)
def test_a_wrong_option_is_a_usage_error_of_its_command(capsys, options, what):
    for name in stage.NAMES:
        code = main([*name.split(), *options])

        shown = capsys.readouterr()
        words = f"Error: aether {name}: {what} See aether {name} --help.\n"
        # Exit code 2 of a hook blocks the call that it is about.
        assert (code, shown.err) == (1 if name == "hook" else 2, words)
        require("error", shown.out)


def test_a_group_without_a_verb_is_a_usage_error_as_json_and_shows_its_help_otherwise(capsys):
    groups = [
        name
        for name, command in COMMANDS
        if isinstance(command, click.Group) and not command.invoke_without_command
    ]
    assert groups
    for name in groups:
        for words in (["--json", *name.split()], [*name.split(), "--json"]):
            assert main(words) == 2, words
            error = json.loads(capsys.readouterr().out)["error"]
            assert (error["where"], error["what"]) == (f"aether {name}", "Missing command."), words

        assert main(name.split()) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err[:6]) == ("", "Usage:"), name


def test_each_command_has_a_result_and_nothing_else_has():
    ctl = {f"compactctl {name}" for name in compactctl.commands}

    assert set(RESULTS) == {*stage.NAMES, *ctl, "aether", "error"}


@pytest.mark.parametrize("name", RESULTS)
def test_the_schema_of_a_result_is_valid(name):
    schema = json_schema(RESULTS[name], name)

    Draft202012Validator.check_schema(schema)
