"""Secrets recognised by a name, a command or a statement."""

from __future__ import annotations

import pytest

from aether.redact import assignments
from aether.redact.assignments import is_secret_name, without_assigned
from aether.redact.rules import rules, without_ruled
from aether.redact.values import is_docker_auth
from tests.redact import corpus
from tests.tables import rows


@rows(
    ("text", "redacted"),
    [
        ("password: hunter2", "password: <REDACTED>"),
        ("a=1&token=x&b=2", "a=1&token=<REDACTED>&b=2"),
        ('{"token": "x", "max_tokens": 512}', '{"token": "<REDACTED>", "max_tokens": 512}'),
        ('{"token": ["x", {"y": "]"}], "n": 1}', '{"token": <REDACTED>, "n": 1}'),
        ("secret: |\n  a\n\n  b\nc: d", "secret: |\n  <REDACTED>\nc: d"),
        ("password: x)", "password: <REDACTED>)"),
        ("İ password: x", "İ password: <REDACTED>"),
        ("f(password='x', token=token)", "f(password='<REDACTED>', token=token)"),
        ("<secret>x</secret>", "<secret><REDACTED></secret>"),
        ("<secret>x", "<secret>x"),
        ("password 'x y'", "password '<REDACTED>'"),
        ("token 'x y'", "token 'x y'"),
        ("token: '''x\ny", "token: '''<REDACTED>"),
        ('token: \\"x', 'token: \\"<REDACTED>'),
        ("token: 'x\ny", "token: '<REDACTED>\ny"),
        ("PWD=hunter2", "PWD=<REDACTED>"),
        ("password=Secret", "password=<REDACTED>"),
        ("the password: correct horse", "the password: <REDACTED>"),
        ("-password hunter2 -x", "-password <REDACTED> -x"),
        ("token: <REDACTED>", "token: <REDACTED>"),
    ],
)  # fmt: skip
def test_only_the_value_is_replaced(text, redacted):
    assert without_assigned(text) == redacted
    assert without_assigned(redacted) == redacted


def test_secrets_in_an_unclosed_object_are_replaced():
    text = '{"credentials": {"user": "bob", "password": "hunter2"'

    assert without_assigned(text) == '{"credentials": {"user": "bob", "password": "<REDACTED>"'


def test_after_many_unclosed_objects_only_their_values_are_replaced():
    text = '"secrets": {' * 30 + '"token": "hunter2", "secrets": ["a"]'

    assert "hunter2" not in without_assigned(text)
    assert without_assigned(text).endswith('"secrets": ["a"]')


@rows("length", [*range(1018, 1026), 10_000])
def test_a_value_of_any_length_is_replaced_whole(length):
    secret = "k" * length + ",rest" + "y" * 100

    assert without_assigned(f"INFO token: {secret}\nn: 1") == "INFO token: <REDACTED>\nn: 1"


SECRET = """
password Passwort db_password DB_PASS userPassword PGPASSWORD passwd pwd passphrase api_key apiKey API-KEY x-api-key
OPENAI_API_KEY OPENAI_KEY anthropicKey client_secret clientSecret secret secrets SECRET_2 AWS_SECRET_ACCESS_KEY
access_token accessToken AccessToken refresh-token id_token token GITHUB_TOKEN _authToken _auth authorization
Proxy-Authorization cookie Set-Cookie private_key privateKey AccountKey SharedAccessKey connection_string
ConnectionString credentials api_tokens API_KEY_PROD password_hash password_confirmation spring.datasource.password
--api-key jwt encryption_key subscription-key identitytoken senha Kennwort 密码 Пароль Contraseña mi_contraseña
"""
PLAIN = """
max_tokens max_token maxTokens token_count tokenCount total_tokens tokens input_tokens token_type tokenizer
next_page_token eos_token pad_token password_policy passwords_url secret_name secretary key keys primary_key
foreign_key sort_key cache_key public_key keyboard monkey author authored pass passed passage compass bypass string
query_string api_key_url private tokenize_text 2 resenha contraseñas 密码学
"""


@rows("name", SECRET.split())
def test_names_of_secrets_are_recognised(name):
    assert is_secret_name(name)


@rows("name", [*PLAIN.split(), "", "…", "secret sauce recipe"])
def test_other_names_are_not_recognised(name):
    assert not is_secret_name(name)


COMMANDS = [
    case
    for case in corpus.ASSIGNED
    if case.name.startswith(("mysql", "sshpass", "identified", "set password", "docker auth"))
]


@rows("case", COMMANDS, ids=lambda case: case.name)
def test_passwords_of_commands_are_replaced(case):
    clean = without_ruled(case.text)

    assert not [secret for secret in case.secrets if secret in clean]
    assert not [part for part in case.kept if part not in clean]
    assert without_ruled(clean) == clean


@pytest.mark.parametrize("value", ["Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI"])
def test_a_user_and_a_password_in_base64_are_credentials_of_docker(value):
    assert is_docker_auth(value)


@rows(
    "text",
    [
        "UserPromptSubmit: design the log of users.",
        "412 passed in 9.1s, three keys and the accessor of secrets.",
    ],
)
def test_a_text_where_nobody_says_a_secret_compiles_no_pattern_of_it(text, monkeypatch):
    monkeypatch.setattr(
        assignments, "rules", lambda name: [rule._replace(pattern=None) for rule in rules(name)]
    )

    assert assignments.without_said(text) == text


def test_a_word_that_is_no_password_hides_none_behind_it():
    assert assignments.without_said("the password PASSWORD Tr0ub4dor&3") == "the password PASSWORD <REDACTED>"
