"""Laws of merging into settings of Claude Code: foreign bytes stay, twice is once, and out is the inverse of in."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from aether.hosts.claude_code.install import EVENTS, merge_server, own_groups, shared_groups, unmerge_server
from aether.hosts.handlers import is_own_handler, merge, own_places, unmerge

WANTED = own_groups(["/venv/bin/aether-hook"])
OLDER = shared_groups()
SERVER = {"command": "aether", "args": ["mcp"]}
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3),
    max_leaves=6,
)
handlers = st.fixed_dictionaries(
    {
        "type": st.just("command"),
        "command": st.sampled_from(["say done", "aether status", "echo aether-hook"]),
    }
)
groups = st.fixed_dictionaries(
    {"hooks": st.lists(handlers, max_size=2)},
    optional={"matcher": st.sampled_from(["Bash", "", "Edit|Write"])},
)
events = st.sampled_from([*EVENTS, "PostToolBatch", "Notification"])
others = st.dictionaries(
    st.text(max_size=5).filter(lambda key: key not in {"hooks", "mcpServers"}), values, max_size=3
)


@st.composite
def texts(draw, key, tables):
    """Draw settings as somebody may have written them: any order, indentation and line ends."""
    pairs = list(draw(others).items())
    if draw(st.booleans()):
        pairs.insert(draw(st.integers(0, len(pairs))), (key, draw(tables)))
    indent = draw(st.sampled_from([None, 0, 2, 4, "\t"]))
    text = json.dumps(dict(pairs), indent=indent, ensure_ascii=draw(st.booleans()))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", " ", "\n"])) + text + draw(st.sampled_from(["", "\n", " \n\n"]))


written = texts("hooks", st.dictionaries(events, st.lists(groups, max_size=3), max_size=4))
listed = texts("mcpServers", st.dictionaries(st.text(max_size=6), values, max_size=3))


@given(written)
def test_foreign_content_stays_and_ours_is_all_there(text):
    before, after = json.loads(text), json.loads(merge(text, WANTED))

    assert {key: after[key] for key in before if key != "hooks"} == {
        key: before[key] for key in before if key != "hooks"
    }
    assert [*before][: len(before)] == [*after][: len(before)]
    for event, found in before.get("hooks", {}).items():
        assert [group for group in after["hooks"][event] if group != WANTED.get(event)] == found
    assert all(len(own_places(after["hooks"][event])) == 1 for event in EVENTS)


@given(written)
def test_only_insertions_are_made(text):
    """Every character of the text from before is in the merged one, in order."""
    rest = iter(merge(text, WANTED))

    assert all(sign in rest for sign in text.strip().strip("{}"))


@given(written)
def test_merging_twice_is_merging_once(text):
    once = merge(text, WANTED)

    assert merge(once, WANTED) == once


@given(written)
def test_merging_over_an_older_version_is_merging_once(text):
    assert merge(merge(text, OLDER), WANTED) == merge(text, WANTED)


@given(written)
def test_removing_is_the_inverse(text):
    back = unmerge(merge(text, WANTED), text)

    assert json.loads(back) == json.loads(text)
    if not empties(json.loads(text)):
        assert back == text


def empties(value):
    """Return whether we were put into something empty: the merged text does not show its blanks."""
    hooks = value.get("hooks")
    return value == {} or hooks == {} or (hooks and any(hooks.get(event) == [] for event in EVENTS))


@given(written, written)
def test_edits_between_merging_and_removing_stay(text, other):
    """A person edits what is not ours; taking out leaves exactly their edit."""
    merged = json.loads(merge(text, WANTED))
    edit = json.loads(other)
    edit.pop("hooks", None)
    edited = json.dumps({**merged, **edit}, indent=2)

    back = json.loads(unmerge(edited, text))

    assert back == {**json.loads(text), **edit}


strewn = st.lists(
    st.builds(
        lambda found: {"hooks": found},
        st.lists(
            handlers | st.sampled_from([WANTED["Stop"]["hooks"][0], OLDER["Stop"]["hooks"][0]]), max_size=4
        ),
    ),
    max_size=4,
)


@given(strewn)
def test_ours_are_removed_in_any_place_and_renewed_as_one(groups):
    text = json.dumps({"hooks": {"Stop": groups}}, indent=2)

    left = json.loads(unmerge(text, '{"hooks": {"Stop": []}}'))["hooks"]["Stop"]
    renewed = json.loads(merge(text, {"Stop": WANTED["Stop"]}))["hooks"]["Stop"]

    assert own_places(left) == []
    assert foreign(left) == foreign(groups) == foreign(renewed)
    assert len(own_places(renewed)) == 1


def foreign(groups):
    """Return the handlers of others, in order."""
    return [one for group in groups for one in group["hooks"] if not is_own_handler(one)]


@given(listed)
def test_a_server_is_added_once_and_removed(text):
    before = json.loads(text)
    merged = merge_server(text, SERVER)

    assert merge_server(merged, SERVER) == merged
    if before.get("mcpServers", {}).get("aether") is None and "aether" not in before.get("mcpServers", {}):
        assert json.loads(merged)["mcpServers"]["aether"] == SERVER
    assert json.loads(unmerge_server(merged, text)) == before


# --- Handlers without groups, as Copilot CLI and Cursor keep them

FLAT = {"stop": {"command": "/venv/bin/aether-hook cursor stop", "timeout": 5}, "sessionStart": {"command": "aether-hook cursor sessionStart"}}  # fmt: skip
flat_events = st.sampled_from([*FLAT, "preToolUse"])
flat = texts("hooks", st.dictionaries(flat_events, st.lists(handlers, max_size=3), max_size=3))


@given(flat)
def test_flat_handlers_come_and_go_alone(text):
    once = merge(text, FLAT)
    back = unmerge(once, text)

    assert merge(once, FLAT) == once
    after, before = json.loads(once), json.loads(text)
    for event, wanted in FLAT.items():
        assert [one for one in after["hooks"][event] if is_own_handler(one)] == [wanted]
        assert [one for one in after["hooks"][event] if not is_own_handler(one)] == before.get("hooks", {}).get(event, [])  # fmt: skip
    assert json.loads(back) == before


@given(st.lists(handlers | st.sampled_from(list(FLAT.values())), max_size=5))
def test_flat_handlers_of_ours_are_one_wherever_they_were(present):
    text = json.dumps({"hooks": {"stop": present, "gone": present}})

    hooks = json.loads(merge(text, {"stop": FLAT["stop"]}))["hooks"]

    others = [one for one in present if not is_own_handler(one)]
    assert [one for one in hooks["stop"] if not is_own_handler(one)] == others
    assert [one for one in hooks["stop"] if is_own_handler(one)] == [FLAT["stop"]]
    assert hooks.get("gone", []) == others
