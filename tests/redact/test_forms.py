"""Secrets recognised by their own form."""

from __future__ import annotations

from aether.redact.forms import PLACEHOLDER, without_shapes
from tests.redact import corpus
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
