"""Secrets recognised by their own form."""

from __future__ import annotations

import base64
import binascii
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from aether.redact import rules
from aether.redact.redact import redact
from aether.redact.rules import without_ruled
from aether.redact.table import PLACEHOLDER, compiled, pattern, table
from tests.redact import corpus
from tests.tables import rows


@rows("name", corpus.SHAPES)
@rows("around", [" {} ", '"{}"', "({})", "x={};", "https://example.org/{}/x", "{}\n", "key:{}"])
def test_a_key_is_recognised_by_its_form_in_any_place(name, around):
    key = corpus.SHAPES[name]

    redacted = without_ruled(around.format(key))

    assert key not in redacted
    assert PLACEHOLDER in redacted


@rows("case", corpus.KEYS, ids=lambda case: case.name)
def test_a_private_key_is_replaced_whole_also_cut_or_escaped(case):
    redacted = without_ruled(case.text)

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
    assert without_ruled(text) == text


def test_a_text_longer_than_keys_is_replaced_from_both_marks():
    body = "\n".join(["A" * 64] * 600)

    redacted = without_ruled(f"a\n{corpus.BEGIN % ''}\n{body}\n{corpus.END % ''}\nb")

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
    content = table()
    assert len(content["forms"]) >= 150
    assert {row["source"] for row in content["forms"]} <= {
        "gitleaks",
        "trufflehog",
        "detect-secrets",
        "provider",
    }
    left = []
    for nth, row in enumerate(content["forms"]):
        for around in ("use {} now", '{{"text": "a\\n{}\\n"}}', "x={}"):
            secret = example(row, content["alphabets"], nth)
            if "check" not in row and secret in redact(around.format(secret)):
                left.append((row["form"], secret))
    assert not left


def test_the_argument_of_each_program_of_the_table_is_replaced():
    left = []
    for row in table()["commands"]:
        before = {
            "user:value": "bob:",
            "user%value": "bob%",
            "user,value": "bob,",
            "user/value": "bob/",
            "name=value": "A=",
        }
        flag = (row["flags"][0] + ("" if row["flags"][0].endswith(":") else " ")) if "flags" in row else ""
        skipped = "word " * row.get("skip", 0)
        start = "sid=" if row.get("check") == "cookie" else before.get(row.get("form"), "")
        text = f"{row['program']} {flag}{skipped}{start}zz81kd9x"
        if "zz81kd9x" in redact(text) or "zz81kd9x" in redact(f"ls\\n{text}\\n"):
            left.append(text)
    assert not left


def test_a_login_with_an_assignment_behind_it_is_no_netrc():
    assert (
        redact('no login with password = """a b\nhunter2"""')
        == f'no login with password = """{PLACEHOLDER}"""'
    )


def test_a_text_without_a_word_that_may_be_a_token_uses_no_form(monkeypatch):
    monkeypatch.setattr(rules, "_forms", None)
    text = "The token-based key- and api- of the project, see configuration and documentation."

    assert without_ruled(text) == text


@rows("around", ["{}", "my{}s", "\\\\{}", "%3D{}", "é{}é", "İ {}", "x_{}.y"])
def test_no_keyword_of_a_text_is_overlooked(around):
    keywords = {keyword for part in rules._keywords() for keyword in part}
    assert len(keywords) > 100
    for keyword in [*keywords, *map(str.upper, keywords)]:
        text = f"the {around.format(keyword)} again"

        assert rules.look(text).signs >= {one for one in keywords if one in rules.lowered(text)}, text


def test_every_pattern_of_the_table_can_be_compiled():
    rows = [row for name in ("rules", "prose", "between") for row in table()[name]]
    given = [row[key] for row in rows for key in ("regex", "sign", "after", "before") if key in row]

    assert all(re.compile(compiled(text).pattern) for text in given)
    assert all(re.compile(pattern(name).pattern) for name in table()["patterns"])
    assert all(rules._form_pattern(nth) for nth in range(len(table()["forms"])))


def _table_rules():
    return [row for name in ("rules", "prose") for row in table()[name]]


@pytest.mark.slow
@rows("row", _table_rules(), ids=lambda row: row["id"])
@settings(max_examples=15, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=strategies.data())
def test_whatever_a_rule_matches_holds_a_keyword_where_it_is_tried(row, data):
    expression = compiled(row["regex"]).pattern
    text = data.draw(strategies.from_regex(re.compile(expression)))
    match = re.search(expression, text)
    seen = rules.look(text)
    rule = rules._rule(row)

    assert not match[rule.secret] or not seen.signs.isdisjoint(rule.keywords)
    ahead = rules.lowered(text) if rule.any_case else text
    tried = [at + match.start() for at in map(len, rule.at) if ahead.startswith(rule.at, match.start())]
    assert not rule.at or any(rules._follows(rule, text, at) for at in tried)


@rows(
    "text",
    [
        "WIFI:T:WPA;S:Home;P:blue-horse;;",
        r"WIFI:S:Ho\;me;T:WPA;P:blue-horse\;;H:true;;",
        "WIFI:P:blue-horse;",
    ],
)
def test_the_password_in_the_qr_text_of_a_network_is_replaced(text):
    redacted = redact(text)

    assert "blue" not in redacted
    assert redacted.startswith("WIFI:")


@rows("text", ["WIFI:S:Home;T:nopass;;", "passwd: unchanged", "WIFI: P: 3"])
def test_words_beside_a_name_of_a_secret_stay(text):
    assert redact(text) == text


def nats_seed(key):
    content = bytes((0x95, 0)) + key
    return base64.b32encode(content + binascii.crc_hqx(content, 0).to_bytes(2, "little")).decode().rstrip("=")


# The published examples of BIP-32 (its first test vector), of NIP-19 and of Bitcoin's import format, and a seed of NATS.
CHECKED = [
    "5Kb8kLf9zgWQnogidDA76MzPL6TsZZY36hWXMssSzNydYXYB9KF", "KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617",
    nats_seed(bytes(range(32))),
    "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5",
]  # fmt: skip


@rows("around", ["{}", "use {} now", '{{"text": "a\\n{}\\n"}}', "x={}"])
def test_a_private_key_with_a_checksum_is_replaced(around):
    assert not [key for key in CHECKED if key in redact(around.format(key))]


@rows("text", ["kubeadm join 10.0.0.5:6443 --token {}", "$ kubeadm token create --ttl 2h\n{}\n"])
def test_a_bootstrap_token_beside_kubeadm_is_replaced(text):
    assert PLACEHOLDER in redact(text.format("ab12cd.0123456789abcdef"))


@rows("nth", [5, 20, 40, -1])
def test_a_text_like_a_private_key_whose_checksum_is_wrong_stays(nth):
    for key in CHECKED:
        letters = [*key]
        letters[nth] = "4" if key[nth] != "4" else "5"
        text = f"see {''.join(letters)} here"

        assert without_ruled(text) == text


@rows(
    "text",
    [
        "s-s4t2ud-client and s-s4t2af-application", "pubkey-0123 pubkey-fingerprint-of-the-server",
        "pylf_v1_us_token pylf_v1_eu_", "pnu_settings_of_the_project", "CLOJARS_USERNAME CLOJARS_PASSWORD",
        "kubeadm upgrade node01.productioncluster and kubeadm-1.31.0", "AVNS_SERVICE_PASSWORD", "ES_JAVA_OPTS=-Xms512m", "waka_time",
        "node01.productioncluster", "xprv and xpub keys", "nsec1 and npub1 of Nostr",
    ],
)  # fmt: skip
def test_texts_like_the_newer_forms_stay(text):
    assert redact(text) == text
