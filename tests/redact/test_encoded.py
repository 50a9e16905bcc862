"""Secrets in another form: texts in base64, seed phrases, divided keys, and passwords in the quotes of another script."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.project import shipped
from aether.redact.redact import redact
from aether.redact.table import PLACEHOLDER
from tests.redact.corpus import drawn
from tests.tables import rows

with open(shipped("data/seed_words.json"), encoding="utf-8") as file:
    SEEDS = json.load(file)["words"].split()
RAW = drawn(20, seed=21)
ENV = f"DB_PASSWORD={RAW}\nDEBUG=false\nREGION=eu-central-1\nAPI_KEY={drawn(24, seed=22)}\n"


def phrase(entropy: bytes, *, valid: bool = True) -> str:
    """Return the words of BIP-39 for `entropy`, with its checksum or with another."""
    bits = len(entropy) // 4
    checksum = hashlib.sha256(entropy).digest()[0] >> (8 - bits)
    number = int.from_bytes(entropy, "big") << bits | (checksum if valid else checksum ^ 1)
    count = (len(entropy) * 8 + bits) // 11
    return " ".join(SEEDS[number >> 11 * place & 2047] for place in reversed(range(count)))


ENTROPY = st.sampled_from([16, 20, 24, 28, 32]).flatmap(lambda size: st.binary(min_size=size, max_size=size))


@given(
    entropy=ENTROPY,
    before=st.sampled_from(["", "note: ", "Keep it.\n"]),
    after=st.sampled_from(["", ".", "\nnext"]),
)
def test_a_seed_phrase_is_replaced_wherever_it_is(entropy, before, after):
    words = phrase(entropy)
    if words.split() == sorted(words.split()) or len(set(words.split())) < 9:
        return  # nobody draws such a one

    assert redact(before + words + after) == before + PLACEHOLDER + after


@given(entropy=st.binary(min_size=16, max_size=16))
def test_twelve_words_with_another_checksum_stay(entropy):
    words = phrase(entropy, valid=False)

    assert redact(words) == words


def test_the_published_example_of_a_phrase_is_replaced_and_the_list_itself_stays():
    assert (
        redact("legal winner thank year wave sausage worth useful legal winner thank yellow") == PLACEHOLDER
    )
    listed = "\n".join(SEEDS)
    assert redact(listed) == listed


def test_the_words_of_a_phrase_may_be_numbered_behind_a_hint():
    words = phrase(bytes(range(16))).split()
    text = "My recovery words:\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(words, 1))

    assert redact(text) == f"My recovery words:\n1. {PLACEHOLDER}"


@rows("width", [0, 64, 76])
def test_a_file_of_settings_in_base64_is_replaced_whole(width):
    block = base64.b64encode(ENV.encode()).decode()
    lines = "\n".join(block[at : at + width] for at in range(0, len(block), width)) if width else block

    assert redact(f"cat .env | base64\n{lines}\n$ ") == f"cat .env | base64\n{PLACEHOLDER}\n$ "


@rows(
    "content",
    [
        b"hello world, this is only a sentence without anything that has to go",
        b"\x89PNG\r\n\x1a\n" + bytes(range(60)),
        "Grüße aus der Höhle, ohne irgendein Geheimnis darin".encode(),
        b"Name,Age\nEva,32\nBen,41\nCarl,55\nDora,23\nEmil,77\n",
    ],
)
def test_other_base64_stays(content):
    text = f"data: {base64.b64encode(content).decode()}"

    assert redact(text) == text


@rows(
    ("first", "second"),
    [
        ("gh" + "p_" + drawn(18, seed=23), drawn(18, seed=24)),
        ("xo" + "xb-123456789012-1234567890123-" + drawn(12, seed=25), drawn(12, seed=26)),
        ("sk-" + "proj-" + drawn(60, seed=27), drawn(60, seed=28)),
    ],
)
@pytest.mark.parametrize("between", ["\n", "\n    ", "\\\n", "\r\n", "\\n", "\n> "])
def test_a_key_over_two_lines_is_replaced_with_both(first, second, between):
    redacted = redact(f"it is {first}{between}{second}\nand so on")

    assert first not in redacted
    assert second not in redacted
    assert redacted.endswith("and so on")


@rows(
    "text",
    [
        "gh" + "p_short\nnext_line_of_code(1)",
        "see sk-" + "learn\ncontrib2metrics3x4",
        "a " + "xo" + "xb-\nTheNextLine2",
    ],
)
def test_a_line_behind_the_start_of_a_key_stays(text):
    assert redact(text) == text


@rows(
    ("before", "after"),
    [
        ("パスワードは「", "」です。"),
        ("ログインパスワード「", "」を使う"),
        ("密码是「", "」，请保存"),
        ("密碼為『", "』"),
        ("口令：“", "”"),
        ("비밀번호는 '", "'입니다"),
        ("パスワードは", "です"),
    ],
)
def test_a_password_behind_a_word_of_another_script_is_replaced(before, after):
    assert redact(f"{before}Tr0ub4dor&3x{after}") == f"{before}{PLACEHOLDER}{after}"


@rows(
    "text",
    [
        "パスワードは「必須」です",
        "パスワード「10文字以上」",
        "密码不能为空",
        "请在「设置」中修改密码",
        "비밀번호를 '재설정' 하세요",
    ],
)
def test_words_about_passwords_in_another_script_stay(text):
    assert redact(text) == text


@rows(
    ("text", "secret"),
    [
        ('variable "db_password" {\n  type    = string\n  default = "hunter2x"\n}', "hunter2x"),
        ('variable "api_token" {\n  validation {\n    condition = length(var.x) > 3\n  }\n  default = "zz81kd9x"\n}', "zz81kd9x"),
        ("curl -sS -b 'sid=k3; theme=dark' https://a.example.net", "k3"),
        ('curl --cookie "JSESSIONID=0FF1CE" https://a.example.net', "0FF1CE"),
        ("Set-Cookie: theme=dark; connect.sid=s%3Aabc; Path=/", "s%3Aabc"),
        ('"private_key_id": "0123456789abcdef0123"', "0123456789abcdef0123"),
    ],
)  # fmt: skip
def test_values_in_the_grammar_of_their_language_are_replaced(text, secret):
    assert secret not in redact(text)


@rows(
    "text",
    [
        'variable "db_password" {\n  type = string\n  sensitive = true\n}\nvariable "region" {\n  default = "eu"\n}',
        'variable "password_length" {\n  default = "24"\n}',
        'variable "token_url" {\n  default = "https://login.example.net"\n}',
        "Set-Cookie: theme=dark; SameSite=Lax; Secure",
        "Cookie: lang=de; theme=dark",
        "curl -b cookies.txt https://a.example.net",
        'curl -b "$COOKIE" https://a.example.net',
        "password: no changes",
        "machine translation, login page, password field",
        '"private_key_id": "<id>"',
    ],
)
def test_words_in_the_same_grammar_stay(text):
    assert redact(text) == text
