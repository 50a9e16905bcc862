"""Rules that act in a home: from a person's entry to a stopped call, and back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

import aether
from aether.api import enforcing, forget
from aether.api.home import read
from aether.cli.main import cli
from aether.errors import CorruptDocument, InvalidInput, NotFound
from aether.hosts import HOSTS, hook
from aether.memory.items import items_of
from aether.store import enforced
from tests import homes

TEXT = "Never run `git push` on Fridays."


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the home of a project, with a user whose state is empty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    homes.fresh(project)
    return project / ".aether"


def add(home, text=TEXT, evidence="person", type="constraint", **metadata):
    return aether.add_working_memory_item(text, type, metadata={"evidence": evidence, **metadata}, home=home)


def call(home, command="git push", host="claude-code", **fields):
    """Return what the hook answers before a command of a shell."""
    names = {"gemini-cli": "BeforeTool", "cursor": "preToolUse"}
    tools = {"gemini-cli": "run_shell_command", "cursor": "Shell", "copilot": "bash", "opencode": "bash"}
    payload = {
        "hook_event_name": names.get(host, "PreToolUse"), "session_id": "s", "cwd": str(home.parent), "tool_name": tools.get(host, "Bash"),
        "tool_input": {"command": command}, **fields,
    }  # fmt: skip
    code, output = hook.main([host], json.dumps(payload).encode())
    assert code == 0
    return json.loads(output) if output else {}


def test_a_rule_of_a_person_stops_a_call_until_it_is_relaxed(home):
    entry = add(home)
    assert call(home) == {}

    rule = aether.enforce_rule(entry, command="git push*", home=home)
    decision = call(home)["hookSpecificOutput"]
    assert decision["permissionDecision"] == "deny"
    assert TEXT in decision["permissionDecisionReason"]
    assert rule["id"] in decision["permissionDecisionReason"]
    assert call(home, "git pull") == {}
    assert call(home, "$X push")["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert aether.enforced_rules(home=home) == [rule]

    assert aether.relax_rule(rule["id"][-8:], home=home) == rule
    assert call(home) == {}
    assert aether.get_working_memory_item(entry, home=home)["content"] == TEXT


@pytest.mark.parametrize("command", ["cd a && make", "A=1 make", "git -C a push", "git commit -m 'a b'"])
def test_a_command_that_would_not_stop_itself_is_refused(home, command):
    with pytest.raises(InvalidInput, match="would not stop"):
        aether.enforce_rule(add(home), command=command, home=home)

    assert aether.enforced_rules(home=home) == []


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        (TEXT, {"command": "cd a && make"}),
        (TEXT, {}),
        (TEXT, {"regex": "("}),
        ("long " * 1_001, {"command": "make"}),
    ],
)
def test_a_rule_that_is_refused_leaves_no_entry(home, text, patterns):
    with pytest.raises(InvalidInput):
        enforcing.add_rule(text, home=home, **patterns)

    assert items_of(read(home).documents["memory"]) == []


def test_one_rule_too_many_leaves_no_entry(home, monkeypatch):
    monkeypatch.setattr(enforcing, "MOST_RULES", 1)
    rule = enforcing.add_rule(TEXT, command="git push", home=home)

    with pytest.raises(InvalidInput, match="act already"):
        enforcing.add_rule("Never merge.", command="git merge", home=home)
    assert aether.enforce_rule(rule["entry"], command="git push", action="ask", home=home)["action"] == "ask"
    assert [item["content"] for item in items_of(read(home).documents["memory"])] == [TEXT]


def test_as_many_rules_as_there_may_be_can_be_read(home):
    long = "行" * enforcing.PATTERN_CHARS
    rules = [
        {"id": f"rule_{nth}", "entry": "wm_1", "text": "行" * enforcing.TEXT_CHARS, "said_at": "", "action": "deny", "tool": long,
         "command": long, "regex": long, "path": long}
        for nth in range(enforcing.MOST_RULES)
    ]  # fmt: skip

    enforced.change(home, lambda _: rules)

    assert aether.enforced_rules(home=home) == rules


def test_an_entry_that_came_with_a_repository_does_not_act(home, monkeypatch):
    entry = add(home)
    monkeypatch.setattr(enforcing, "is_confirmed", lambda _: False)

    with pytest.raises(InvalidInput, match="only an entry of a person"):
        aether.enforce_rule(entry, command="git push", home=home)
    assert enforcing.rule_proposals(home=home) == []
    assert enforcing.add_rule(TEXT, command="git push", home=home)["text"] == TEXT


def test_the_hook_and_the_test_of_a_rule_read_the_aliases_of_git(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home.parent))
    (home.parent / ".gitconfig").write_text("[alias]\n\tShip = push --force\n")
    rule = aether.enforce_rule(add(home), command="git push", home=home)
    fact = {"kind": "run", "command": "git ship"}
    aether.add_working_memory_item("Ran git ship.", "action", metadata={"fact": fact}, home=home)

    assert call(home, "git ship origin")["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert call(home, "git lfs pull") == {}
    assert [stopped.call for stopped in aether.calls_stopped_by(rule["id"], home=home)] == ["git ship"]


def test_each_stopped_call_is_noted_without_its_words(home):
    rule = aether.enforce_rule(add(home), command="git push*", home=home)
    assert enforced.stops(home) == []

    call(home, "git push --force secret-branch")
    call(home, "git pull")
    call(home, session_id="another")

    stops = enforced.stops(home)
    assert [(stop.rule, stop.action, stop.tool, stop.session) for stop in stops] == [
        (rule["id"], "deny", "Bash", "s"),
        (rule["id"], "deny", "Bash", "another"),
    ]
    assert "secret-branch" not in repr(stops)


def test_the_notes_of_stopped_calls_are_bounded_and_a_cut_line_is_passed_over(home, monkeypatch):
    monkeypatch.setattr(enforced, "_MOST_STOP_BYTES", 1_000)
    aether.enforce_rule(add(home), command="git push*", home=home)

    for _ in range(40):
        assert call(home)
    path = f"{enforced.file_of(home)}l"
    with open(path, "ab") as file:
        file.write(b'{"at": "2026')

    assert 0 < len(enforced.stops(home)) < 20
    assert os.path.getsize(path) + os.path.getsize(f"{path}.1") < 3_000


def test_a_stop_that_cannot_be_noted_is_a_stop(home):
    aether.enforce_rule(add(home), command="git push*", home=home)
    os.mkdir(f"{enforced.file_of(home)}l")

    assert call(home)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_is_answered_in_its_form(home, host):
    aether.enforce_rule(add(home), command="git push*", home=home)

    answer = json.dumps(call(home, host=host))

    assert "deny" in answer or host == "opencode"
    assert "Never run" in answer
    assert "ask" in import_module(HOSTS[host]).stop("ask", "x") or host not in ("claude-code", "copilot")


@pytest.mark.parametrize(
    ("host", "tool", "name"),
    [
        ("codex", "apply_patch", "command"), ("codex", "apply_patch", "input"), ("copilot", "apply_patch", "input"),
        ("opencode", "apply_patch", "patchText"), ("opencode", "patch", "patchText"),
        ("copilot", "create", "path"), ("opencode", "write", "filePath"), ("gemini-cli", "replace", "file_path"),
        ("cursor", "StrReplace", "path"), ("cursor", "EditNotebook", "target_notebook"), ("claude-code", "NotebookEdit", "notebook_path"),
    ],
)  # fmt: skip
def test_a_path_is_found_in_the_arguments_of_every_host_also_through_a_link(home, host, tool, name):
    enforcing.add_rule("Never change a migration.", path="migrations/**", home=home)
    (home.parent / "migrations").mkdir()
    (home.parent / "linked").symlink_to("migrations")

    for path, stops in (("migrations/1.sql", True), ("linked/1.sql", True), ("other/1.sql", False)):
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"
        arguments = {name: patch if "patch" in tool else path}
        assert bool(call(home, host=host, tool_name=tool, tool_input=arguments)) == stops, path


def test_what_came_with_a_repository_stops_nothing(home, tmp_path):
    aether.enforce_rule(add(home), command="git push*", home=home)
    clone = tmp_path / "clone"
    os.rename(home.parent, clone)

    assert call(clone / ".aether", cwd=str(clone)) == {}
    assert call(home, cwd=str(tmp_path)) == {}


def test_pausing_the_hooks_pauses_rules(home):
    aether.enforce_rule(add(home), command="git push*", home=home)
    (home / "hooks").mkdir(exist_ok=True)
    (home / "hooks" / "paused").touch()

    assert call(home) == {}


def test_a_pause_that_came_with_the_repository_pauses_nothing(home):
    shutil.rmtree(home.parent / ".git")
    subprocess.run(["git", "init", "-q"], cwd=home.parent, check=True)
    enforcing.add_rule(TEXT, command="git push*", home=home)
    (home / "hooks").mkdir(exist_ok=True)
    (home / "hooks" / "paused").touch()
    assert call(home) == {}

    subprocess.run(["git", "add", "-f", ".aether/hooks/paused"], cwd=home.parent, check=True)
    assert call(home)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_rules_act_below_in_a_directory_with_a_home_of_its_own(home):
    rule = enforcing.add_rule(TEXT, command="git push*", home=home)
    below = home.parent / "packages" / "ui"
    homes.fresh(below)
    inner = enforcing.add_rule("Never merge here.", command="git merge", home=below / ".aether")

    assert call(home, cwd=str(below))["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert call(home, "git merge x", cwd=str(below))["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert call(home, "git merge x") == {}
    assert [stop.rule for stop in enforced.stops(home)] == [rule["id"]]
    assert [stop.rule for stop in enforced.stops(below / ".aether")] == [inner["id"]]


def test_a_damaged_file_lets_the_call_pass_and_is_logged(home):
    aether.enforce_rule(add(home), command="git push*", home=home)
    for text in ("{", '{"rules": [{}]}', '{"rules": 3}'):
        with open(enforced.file_of(home), "w") as file:
            file.write(text)

        assert call(home) == {}
        with pytest.raises(CorruptDocument, match="enforce the rules again"):
            aether.enforced_rules(home=home)
    assert "CorruptDocument" in (home / "hook.log").read_text()


@pytest.mark.parametrize(
    ("evidence", "patterns", "words"),
    [
        ("agent", {"command": "x"}, "only an entry of a person"),
        ("person", {}, "expected one of command"),
        ("person", {"command": "x", "regex": "y"}, "expected one of command"),
        ("person", {"regex": "("}, "regular expression"),
        ("person", {"command": "  "}, "empty or too long"),
        ("person", {"path": "x" * 501}, "empty or too long"),
        ("person", {"command": "x", "action": "allow"}, "'allow' is not an action"),
    ],
)
def test_what_may_not_act_is_refused(home, evidence, patterns, words):
    kind = "constraint" if evidence == "person" else "decision"  # a rule of an agent waits
    with pytest.raises(InvalidInput, match=words):
        aether.enforce_rule(add(home, evidence=evidence, type=kind), home=home, **patterns)
    assert aether.enforced_rules(home=home) == []


def test_an_ended_entry_never_acts(home):
    entry = add(home)
    aether.resolve_memory(entry, home=home)

    with pytest.raises(InvalidInput, match="resolved"):
        aether.enforce_rule(entry, command="x", home=home)
    with pytest.raises(NotFound):
        aether.enforce_rule("wm_1", command="x", home=home)


def test_ids_are_refused_that_name_none_or_several(home, monkeypatch):
    for text in ("One.", "Two."):
        aether.enforce_rule(add(home, text), command="x", home=home)

    with pytest.raises(NotFound, match="rule list"):
        aether.relax_rule("nothing", home=home)
    [*_, last] = aether.enforced_rules(home=home)
    monkeypatch.setattr(enforced, "read", lambda home: [last, {**last, "id": f"x{last['id']}"}])
    with pytest.raises(InvalidInput, match="several"):
        aether.relax_rule(last["id"][-4:], home=home)


def test_the_same_pattern_of_one_entry_is_one_rule_and_there_is_a_bound(home, monkeypatch):
    entry = add(home)
    aether.enforce_rule(entry, command="x", home=home)
    [rule] = [aether.enforce_rule(entry, command="x", action="ask", home=home)]

    assert aether.enforced_rules(home=home) == [rule]
    monkeypatch.setattr(enforcing, "MOST_RULES", 1)
    with pytest.raises(InvalidInput, match="Relax one"):
        aether.enforce_rule(entry, command="y", home=home)


def test_history_names_exactly_what_would_have_been_stopped(home):
    facts = [
        {"kind": "run", "command": "git push origin main"},
        {"kind": "run", "command": "git pull"},
        {"kind": "change", "path": "migrations/1.sql", "action": "changed"},
    ]
    ids = [add(home, f"Fact {n}.", "machine", "outcome", fact=fact) for n, fact in enumerate(facts)]
    entry = add(home)
    push = aether.enforce_rule(entry, command="git push*", home=home)
    migrations = aether.enforce_rule(entry, path="migrations/**", action="ask", home=home)

    [stopped] = aether.calls_stopped_by(push["id"], home=home)
    assert (stopped.id, stopped.call, stopped.action) == (ids[0], "git push origin main", "deny")
    [edited] = aether.calls_stopped_by(migrations["id"], home=home)
    assert (edited.id, edited.tool, edited.action) == (ids[2], "Edit", "ask")
    for fact in facts[:2]:
        assert bool(call(home, fact["command"])) == (fact["command"] == stopped.call)


@pytest.mark.parametrize(
    "beginning", ['go build -ldflags="-X main.version=$(git…', "git commit -m 'Say", "cat $(ls"]
)
def test_the_end_that_memory_cut_off_is_no_reason_to_ask(home, beginning):
    for command in (beginning, f"git push && {beginning}"):
        fact = {"kind": "run", "command": command}
        add(home, f"Ran {command}", "machine", "outcome", fact=fact)
    push = aether.enforce_rule(add(home), command="git push", home=home)

    [stopped] = aether.calls_stopped_by(push["id"], home=home)

    assert (stopped.action, stopped.call) == ("deny", f"git push && {beginning}")


def test_rules_that_name_a_command_or_a_path_are_proposed_and_never_act_alone(home):
    command, path = add(home), add(home, "Do not edit `data/secrets.json` by hand.")
    add(home, "Never run `make deploy`.", "agent")
    add(home, "Be brief.")

    assert {
        proposal.entry: (proposal.command, proposal.path) for proposal in aether.rule_proposals(home=home)
    } == {
        command: ("git push", ""),
        path: ("", "data/secrets.json"),
    }
    assert call(home) == {}
    aether.enforce_rule(command, command="git push", home=home)
    assert [proposal.entry for proposal in aether.rule_proposals(home=home)] == [path]


def test_erasing_a_text_ends_the_rule_that_holds_it(home):
    first, second = add(home), add(home, "Do not touch the secret project Bluebird.")
    aether.enforce_rule(first, command="a", home=home)
    aether.enforce_rule(second, command="b", home=home)

    forget.erase(match="secret project Bluebird", home=home)
    assert [rule["command"] for rule in aether.enforced_rules(home=home)] == ["a"]
    forget.erase([first], home=home)
    assert aether.enforced_rules(home=home) == []
    with open(enforced.file_of(home)) as file:
        assert "Bluebird" not in file.read()


@pytest.mark.parametrize("is_moved", [True, False])
def test_erasing_reaches_the_rules_that_a_project_had_where_it_was(home, tmp_path, is_moved):
    before, after = tmp_path / "before" / ".aether", tmp_path / "after" / ".aether"
    for project in (before, tmp_path / "another" / ".aether"):
        aether.init(project)
        aether.enforce_rule(
            add(project, "Do not touch the secret project Bluebird."), command="a", home=project
        )
        aether.enforce_rule(add(project), command="b", home=project)
    (before.parent.rename if is_moved else partial(shutil.copytree, before.parent))(after.parent)
    shutil.rmtree(tmp_path / "another")

    found = forget.preview_erase(match="secret project Bluebird", home=after).places.get("rules that act", 0)
    forget.erase(match="secret project Bluebird", home=after)

    assert found == is_moved
    assert len(enforced.read(before)) == 2 - is_moved
    assert (
        len(enforced.read(tmp_path / "another" / ".aether")) == 2
    )  # may come back: a disk that is not there now
    assert enforced.read(after) == []


@pytest.mark.parametrize(
    "patterns", [{"command": "deploy Bluebird*"}, {"regex": "Bluebird$"}, {"path": "src/Bluebird/**"}]
)
def test_erasing_a_text_ends_the_rule_whose_pattern_says_it(home, patterns):
    entry = add(home)
    aether.enforce_rule(entry, **patterns, home=home)
    forget.erase(match="Bluebird", home=home)
    assert aether.enforced_rules(home=home) == []


def test_erasing_finds_a_text_that_only_a_rule_says(home, capsys):
    aether.enforce_rule(add(home), command="deploy Bluebird*", home=home)
    assert forget.preview_erase(match="Bluebird", home=home).places == {"rules that act": 1}
    cli(["memory", "forget", "--match", "Bluebird", "--erase", "--yes"], standalone_mode=False)
    assert "1 place" in capsys.readouterr().out
    assert aether.enforced_rules(home=home) == []


@pytest.mark.parametrize("spaces", [" ", "   ", "\n"])
def test_erasing_an_entry_ends_the_rule_of_another_with_its_words(home, spaces):
    text = spaces.join(["Do not touch", "the secret project Bluebird."])
    first, again = add(home, text), add(home, text)
    aether.enforce_rule(again, command="deploy", home=home)
    forget.erase([first], home=home)
    assert aether.enforced_rules(home=home) == []


def test_erasing_writes_no_rules_where_none_holds_the_text(home):
    add(home, "Do not touch the secret project Bluebird.")
    assert forget.erase(match="secret project Bluebird", home=home).done
    assert not os.path.exists(os.path.dirname(enforced.file_of(home)))


def test_a_rule_that_outlives_its_entry_is_named_with_its_end(home, capsys):
    entry = add(home)
    rule = aether.enforce_rule(entry, command="git push", home=home)
    ending = f"A rule still stops command git push. To end it: aether rule relax {rule['id']}"

    cli(["memory", "forget", entry, "--yes"], standalone_mode=False)
    assert ending in capsys.readouterr().err
    assert call(home, "git push"), "an agent can forget, too"

    cli(["undo"], standalone_mode=False)
    again = capsys.readouterr().err
    assert ending not in again
    revision = aether.log(limit=1, home=home)[0].revision
    assert f"To have it again: aether undo {revision}" in again


def test_a_damaged_file_of_rules_hinders_no_undo(home, capsys):
    entry = add(home)
    aether.enforce_rule(entry, command="git push", home=home)
    Path(enforced.file_of(home)).write_text("{", encoding="utf-8")

    assert cli(["undo"], standalone_mode=False) == 0

    assert entry not in [item["id"] for item in aether.list_working_memory_items(home=home)]


def test_the_commands_say_what_acts_and_how_to_end_it(home, capsys, monkeypatch):
    def run(*words):
        cli([*words], standalone_mode=False)
        return capsys.readouterr()

    entry = add(home)
    listed = run("rule", "list")
    assert "No rule acts." in listed.out
    assert f'aether rule enforce {entry} --command "git push"' in listed.err

    [rule] = [run("rule", "enforce", entry, "--ask", "--command", "git push")]
    [acting] = aether.enforced_rules(home=home)
    assert acting["action"] == "ask"
    assert f"aether rule relax {acting['id']}" in rule.err
    assert "command git push" in run("rule", "list").out
    assert "nothing that memory knows" in run("rule", "test", acting["id"]).out
    add(home, "Pushed.", "machine", "outcome", fact={"kind": "run", "command": "git push"})
    assert "1 call" in run("rule", "test", acting["id"]).err
    relaxed = run("rule", "relax", acting["id"])
    assert "Relaxed" in relaxed.out
    assert f"aether memory resolve {acting['entry']} or aether memory forget {acting['entry']}" in relaxed.err

    with pytest.raises(InvalidInput, match="not a terminal"):
        run("rule", "add", "Never tag.", "--command", "git tag")
    monkeypatch.setattr("aether.cli.rule.is_typed", lambda: True)
    run("rule", "add", "Never tag.", "--command", "git tag")
    assert call(home, "git tag v1")["hookSpecificOutput"]["permissionDecision"] == "deny"
