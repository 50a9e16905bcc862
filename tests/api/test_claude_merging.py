import json

import pytest

from aether.errors import InvalidDocument
from aether.integrations.claude_code.install import (
    EVENTS,
    hooks_of,
    is_own_server,
    merge,
    merge_server,
    own_groups,
    own_positions,
    parse_settings,
    shared_groups,
    unmerge,
    unmerge_server,
)
from tests.tables import rows

WORDS = ["/venv/bin/aether-hook"]
WANTED = own_groups(WORDS)
FOREIGN = {"type": "command", "command": "say done"}
SETTINGS = """{
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ]
    },
    "model": "opus"
}
"""
SERVER = {"command": "aether", "args": ["mcp"]}


def edited(text, change):
    value = json.loads(text)
    change(value)
    return json.dumps(value, indent=4)


def test_all_that_was_there_stays_and_ours_is_added():
    text = merge(SETTINGS, WANTED)

    value = json.loads(text)
    assert value["hooks"]["Stop"] == [{"hooks": [FOREIGN]}, WANTED["Stop"]]
    assert set(value["hooks"]) == set(EVENTS)
    assert list(value) == ["permissions", "hooks", "model"]
    assert all(line in text for line in SETTINGS.splitlines()[:5])


@rows("text", [SETTINGS, "", "{}", '{"a":1}', '{"hooks": {"Stop": [], "Other": []}}'])
def test_merging_twice_is_merging_once(text):
    once = merge(text, WANTED)

    assert merge(once, WANTED) == once


def test_taking_out_gives_the_text_from_before():
    assert unmerge(merge(SETTINGS, WANTED)) == SETTINGS


def test_what_was_empty_before_stays_empty_where_that_is_known():
    before = '{"hooks": {"Stop": []}}'

    assert unmerge(merge(before, WANTED), before) == before
    assert unmerge(merge(before, WANTED)) == "{}"


def test_nothing_of_ours_is_nothing_to_take_out():
    assert unmerge('{"hooks": {}}') == '{"hooks": {}}'


def test_an_older_entry_is_brought_up_to_date_where_it_stands():
    older = merge(SETTINGS, own_groups(["/old/aether-hook"]))
    older = older.replace('"timeout": 5', '"timeout": 50')

    text = merge(older, WANTED)

    assert text == merge(SETTINGS, WANTED)


def test_an_event_that_is_no_longer_asked_for_goes():
    older = merge(SETTINGS, {**WANTED, "PreToolUse": WANTED["Stop"]})

    assert merge(older, WANTED) == merge(SETTINGS, WANTED)


@rows("matcher", [None, "Bash", ""])
def test_a_matcher_of_before_is_corrected(matcher):
    def change(value):
        value["hooks"]["PostToolUse"][0].pop("matcher")
        if matcher is not None:
            value["hooks"]["PostToolUse"][0]["matcher"] = matcher
        value["hooks"]["Stop"][0]["matcher"] = "x"

    text = merge(edited(merge("", WANTED), change), WANTED)

    assert json.loads(text) == json.loads(merge("", WANTED))


def test_a_handler_that_was_moved_among_others_is_renewed_there_and_found_again():
    def change(value):
        groups = value["hooks"]["Stop"]
        groups[0]["hooks"].append(groups.pop()["hooks"][0] | {"timeout": 99})

    moved = edited(merge(SETTINGS, WANTED), change)

    assert json.loads(merge(moved, WANTED))["hooks"]["Stop"] == [
        {"hooks": [FOREIGN, WANTED["Stop"]["hooks"][0]]}
    ]
    assert json.loads(unmerge(moved)) == json.loads(SETTINGS)


def test_a_handler_among_others_of_another_matcher_gets_its_own_group():
    def change(value):
        value["hooks"]["PostToolUse"] = [
            {"matcher": "Read", "hooks": [FOREIGN, WANTED["PostToolUse"]["hooks"][0]]}
        ]

    text = merge(edited(merge("", WANTED), change), WANTED)

    assert json.loads(text)["hooks"]["PostToolUse"] == [
        {"matcher": "Read", "hooks": [FOREIGN]}, WANTED["PostToolUse"],
    ]  # fmt: skip


def test_several_of_ours_become_one():
    def change(value):
        value["hooks"]["Stop"] += [WANTED["Stop"], shared_groups()["Stop"]]

    text = merge(edited(merge("", WANTED), change), WANTED)

    assert len(own_positions(hooks_of(text)["Stop"])) == 1


def test_what_is_odd_but_not_ours_is_left():
    text = '{"hooks": {"Odd": "no list", "Stop": [3, {"hooks": 4}, {"matcher": "x"}]}}'

    assert unmerge(merge(text, WANTED)) == text


@rows(
    ("text", "words"),
    [
        ("// mine\n{}", "not JSON"), ('{"a": 1,}', "not JSON"), ("[]", "not an object"), ('{"hooks": []}', "hooks is"),
        ('{"hooks": null}', "hooks is"), ('{"hooks": {"Stop": {}}}', "hooks.Stop is"),
    ],
)  # fmt: skip
def test_what_claude_code_would_not_read_is_refused(text, words):
    with pytest.raises(InvalidDocument, match=words) as refused:
        merge(text, WANTED, where="settings.json")

    assert refused.value.where == "settings.json"


@rows("before", ["", '{"mcpServers": {}}', '{"mcpServers": {"other": {"command": "x"}}, "a": 1}'])
def test_a_server_is_put_in_once_and_taken_out(before):
    text = merge_server(before, SERVER)

    assert parse_settings(text)["mcpServers"]["aether"] == SERVER
    assert merge_server(text, SERVER) == text
    assert unmerge_server(text, before) == (before or "{}\n")


def test_our_server_is_renewed_with_what_was_added_to_it():
    text = '{"mcpServers": {"aether": {"command": "/old/aether", "args": ["mcp"], "env": {"A": "1"}}}}'

    assert parse_settings(merge_server(text, SERVER))["mcpServers"]["aether"] == {**SERVER, "env": {"A": "1"}}


def test_a_server_of_that_name_that_is_not_ours_is_its_owners():
    text = '{"mcpServers": {"aether": {"type": "http", "url": "https://example.org"}}}'

    assert merge_server(text, SERVER) == text
    assert unmerge_server(text) == text


def test_our_server_is_taken_out_under_another_name():
    text = '{"mcpServers": {"mem": {"command": "/x/python", "args": ["-P", "-m", "aether", "mcp"]}}}'

    assert unmerge_server(text) == "{}"


@rows("server", [None, {}, {"command": 3}, {"command": "aether"}, {"command": "aether", "args": 3}])
def test_what_is_not_our_server(server):
    assert not is_own_server(server)


def test_what_a_person_added_to_a_handler_of_ours_stays():
    value = json.loads(merge("", WANTED))
    mine = value["hooks"]["Stop"][0]["hooks"][0]
    mine |= {"command": "/old/aether-hook", "timeout": 99, "statusMessage": "Remembering", "async": True}

    (done,) = json.loads(merge(json.dumps(value), WANTED))["hooks"]["Stop"][0]["hooks"]

    assert done == {**WANTED["Stop"]["hooks"][0], "statusMessage": "Remembering", "async": True}
