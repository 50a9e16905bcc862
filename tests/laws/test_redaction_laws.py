"""Laws of redaction: no seeded secret survives, whatever it stands in; a second time changes nothing."""

from __future__ import annotations

import copy
import itertools
import json
import random
import string
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from aether.redact import rules
from aether.redact.redact import redact, redacted
from tests.effort import examples
from tests.laws.json_values import values
from tests.redact import corpus

WORDS = "the cache password token key see docs api_key secret = : => \" ' \\ { } [ ] , ; & ? -- -u < > | # \n \\n sk- eyJ @ ://"


def prose():
    """Text made of words and signs that matter to redaction, in any order, and of any characters."""
    pieces = st.sampled_from(WORDS.split(" ")) | st.text(max_size=6)
    return st.lists(pieces | st.sampled_from([" ", "\n", "<REDACTED>", "1", "Aa1"]), max_size=25).map("".join)


def cases():
    """Secrets in the text they stand in."""
    return st.sampled_from([case for case in corpus.CASES if case.name != "json cut"])


def nested():
    """A way to put a text into a JSON value."""
    wraps = [
        lambda text: [text], lambda text: {"content": text}, lambda text: {"a": [1, {"b": text}], "c": None},
        lambda text: {"type": "tool_result", "content": [{"type": "text", "text": text}]},
        lambda text: (text, "after"), lambda text: {text: 1} if isinstance(text, str) else [text], lambda text: ["before", text],
    ]  # fmt: skip
    return st.lists(st.sampled_from(wraps), max_size=6)


def leaks(value, secrets):
    text = repr(value)
    return [secret for secret in secrets if secret in text or repr(secret)[1:-1] in text]


@given(cases(), nested())
def test_no_secret_survives_in_any_nesting(case, wraps):
    value = case.text
    for wrap in wraps:
        value = wrap(value)
    before = copy.deepcopy(value)

    clean = redacted(value)

    assert not leaks(clean, case.secrets)
    assert redacted(clean) == clean
    assert value == before


@given(cases(), st.sampled_from(["{}", "a\n{}\nb", "note:\n{}", "```\n{}\n```\nend", "- one\n\n{}"]))
def test_no_secret_survives_on_lines_of_its_own(case, around):
    assert not leaks(redact(around.replace("{}", case.text)), case.secrets)


@given(st.sampled_from(sorted(corpus.SHAPES)), st.integers(0, 3), prose())
def test_no_key_survives_however_often_it_was_escaped(name, times, before):
    text = {"text": f"{before} {corpus.SHAPES[name]} after"}
    for _ in range(times):
        text = {"text": json.dumps(text)}

    assert not leaks(redacted(text), [corpus.SHAPES[name]])


@given(st.text("abcdefghjkmnpqrtuvwxyz", min_size=3), st.integers(0, 3))
def test_no_password_survives_however_often_it_was_escaped(made, times):
    secret = f"{made}-7"
    text = json.dumps({"n": 1, "password": secret, "token": {"x": [secret]}, "after": "kept"})
    for _ in range(times):
        text = json.dumps({"text": text})

    clean = redact(text)

    assert secret not in clean
    assert "kept" in clean


@examples(300)
@given(prose())
def test_redacting_twice_changes_nothing(text):
    once = redact(text)

    assert redact(once) == once


@given(values())
def test_a_redacted_value_is_a_copy_and_stays_as_it_is(value):
    before = copy.deepcopy(value)

    once = redacted(value)

    assert redacted(once) == once
    assert repr(value) == repr(before)


def test_a_form_is_searched_where_its_start_is_as_where_its_literal_is():
    drawn = random.Random(7)
    by_start = rules._forms()
    forms = [form for at_start in by_start.values() for form in at_start]
    texts = []
    for literal, _ in forms:
        for before, length in itertools.product(["", "_", "-", "/a", "é", "x", "=\n"], [22, 40]):
            value = "".join(drawn.choices(string.ascii_letters + string.digits, k=length))
            texts += [f"{before}{literal}{value}", f"{before}{literal}{value[:9]}\n{value[9:]}\n"]
    found = [sorted(rules._tokens(text, rules.look(text))) for text in texts]
    with patch.object(rules, "_forms", lambda: {"": forms}):
        assert found == [sorted(rules._tokens(text, rules.look(text))) for text in texts]
    assert sum(map(bool, found)) > len(forms)
