"""Secrets recognised by their own form."""

from __future__ import annotations

import json
import random
import re

from aether.redact import assignments, commands, forms
from aether.redact.forms import PLACEHOLDER, without_shapes
from aether.redact.redact import redact
from tests.redact import corpus
from tests.sources import ROOT
from tests.tables import rows


@rows("name", corpus.SHAPES)
@rows("around", [" {} ", '"{}"', "({})", "x={};", "https://example.org/{}/x", "{}\n", "key:{}"])
def test_a_key_is_recognised_by_its_form_in_any_place(name, around):
    key = corpus.SHAPES[name]

    redacted = without_shapes(around.format(key))

    assert key not in redacted
    assert PLACEHOLDER in redacted


@rows("case", corpus.KEYS, ids=lambda case: case.name)
def test_a_private_key_is_replaced_whole_also_cut_or_escaped(case):
    redacted = without_shapes(case.text)

    assert not [secret for secret in case.secrets if secret in redacted]
    assert not [part for part in case.kept if part not in redacted]


@rows(
    "text",
    [
        "sk-learn-compatible-estimators", "eyJust words", "Basic authentication", "bearer tokens", "AKIA", "hf_hub",
        "https://example.org:8080/a", "https://bob@example.org/", "https://example.org/?a=b@c:d@e", "npm_config_cache",
        corpus.BEGIN % "RSA ", corpus.END % "RSA ", "see " + corpus.END % "" + " at the end",
        "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----", "xoxo-hugs",
    ],
)  # fmt: skip
def test_similar_texts_stay(text):
    assert without_shapes(text) == text


def test_a_text_longer_than_keys_is_replaced_from_both_marks():
    body = "\n".join(["A" * 64] * 600)

    redacted = without_shapes(f"a\n{corpus.BEGIN % ''}\n{body}\n{corpus.END % ''}\nb")

    assert redacted.startswith(f"a\n{PLACEHOLDER}")
    assert "A" * 64 not in redacted
    assert redacted.endswith("b")


def example(row, alphabets, seed):
    """Return a secret of the form of `row`, made up."""
    drawn = random.Random(seed)

    def run(part):
        letters = [char for char in map(chr, range(33, 127)) if re.match(f"[{alphabets[part[1]]}]", char)]
        made = drawn.choices(letters, k=int(part[2]))
        return "".join(["a1B"[: len(made)] if part[1] == "mixed" else "".join(made[:3]), *made[3:]])

    return re.sub(r"\{(\w+):(\d+)(?:\+|-\d+)?\}", run, row["form"])


def test_an_example_of_each_form_of_the_table_is_replaced():
    table = forms.forms()
    assert len(table["forms"]) >= 150
    assert {row["source"] for row in table["forms"]} <= {
        "gitleaks",
        "trufflehog",
        "detect-secrets",
        "provider",
    }
    left = []
    for nth, row in enumerate(table["forms"]):
        for around in ("use {} now", '{{"text": "a\\n{}\\n"}}', "x={}"):
            secret = example(row, table["alphabets"], nth)
            if secret in redact(around.format(secret)):
                left.append((row["form"], secret))
    assert not left


def test_the_marks_of_the_forms_are_those_of_the_table():
    table = forms.forms()
    literals = [(row["form"], row["form"].partition("{")[0]) for row in table["forms"]]
    starts = {"eyJ", *forms._BODIES, *(literal for _, literal in literals if len(literal) > 1)}
    others = [form for form, literal in literals if len(literal) <= 1]
    plain = [forms._pattern(form, table["alphabets"]) for form in others if not forms._held(form)[0]]
    marks = {
        "about": "What a text needs for a form of secrets.json to be in it. It follows from that file, and tests/redact/test_forms.py compares the two.",
        "starts": sorted(starts),
        "holds": [held for form in others if (held := forms._held(form)[0])],
        "other": f"{forms._BEFORE_FORM}(?:{'|'.join(plain)})",
    }

    assert (ROOT / "data" / "secret_marks.json").read_text() == json.dumps(marks, indent=1) + "\n"


@rows(
    "text",
    [
        "The path of patterns is src/cache/service_7.py.", "cd /tmp/project_2/builds/1/full", "see /home/ann2/project/api-v2",
        "http://localhost:8080/index.html has the token-based key- and api-",
    ],
)  # fmt: skip
def test_a_short_word_that_starts_like_a_form_is_no_reason_to_read_the_table(text, monkeypatch):
    forms._marks()
    monkeypatch.setattr(forms, "_table", None)

    assert without_shapes(text) == text


def test_the_argument_of_each_program_of_the_table_is_replaced():
    left = []
    for row in forms.forms()["commands"]:
        before = {
            "user:value": "bob:",
            "user%value": "bob%",
            "user,value": "bob,",
            "user/value": "bob/",
            "name=value": "A=",
        }
        flag = (row["flags"][0] + ("" if row["flags"][0].endswith(":") else " ")) if "flags" in row else ""
        skipped = "word " * row.get("skip", 0)
        text = f"{row['program']} {flag}{skipped}{before.get(row.get('form'), '')}zz81kd9x"
        if "zz81kd9x" in redact(text) or "zz81kd9x" in redact(f"ls\\n{text}\\n"):
            left.append(text)
    assert not left


def test_the_programs_without_flags_are_those_of_the_table():
    found = {
        row["program"].split()[0]
        for row in forms.forms()["commands"]
        if not all(flag.startswith("-") for flag in row.get("flags", ["x"]))
    }
    assert found == commands._WITHOUT_FLAGS


def test_a_login_with_an_assignment_behind_it_is_no_netrc():
    assert (
        redact('no login with password = """a b\nhunter2"""')
        == f'no login with password = """{PLACEHOLDER}"""'
    )


def test_the_signs_of_a_text_are_all_words_that_a_pattern_is_tried_at():
    tried = {word for words, _ in commands._AFTER_WORDS for word in words}

    assert tried | {*assignments._NOUNS, *assignments._PAIRED, *assignments._PARTS} <= forms.SIGNS
    for _, last in assignments._RARE_ASCII:
        assert any(sign in last for sign in forms.SIGNS), last


@rows("around", ["{}", "my{}s", "\\\\{}", "%3D{}", "é{}é", "İ {}", "x_{}.y"])
def test_no_sign_of_a_text_is_overlooked_whatever_was_searched_before(around):
    for sign in [*forms.SIGNS, *map(str.upper, forms.SIGNS), *forms.SIGNS]:
        text = f"the {around.format(sign)} again"

        assert forms.look(text).signs >= {one for one in forms.SIGNS if one in forms.lowered(text)}, text
