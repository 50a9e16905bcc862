import contextlib
import copy
import io
import re
import signal
import time
from pathlib import Path

import pytest

from aether.errors import InvalidInput
from aether.redact import redact as redact_module
from aether.redact.redact import DEFAULT, MAX_DEPTH, Rules, redact, redacted, rules
from tests.redact import corpus
from tests.tables import rows


@rows("case", corpus.CASES, ids=lambda case: case.name)
def test_secrets_are_replaced_and_the_text_around_them_stays(case):
    clean = redact(case.text)

    assert not [secret for secret in case.secrets if secret in clean]
    assert not [part for part in case.kept if part not in clean]
    assert redact(clean) == clean


@rows("text", corpus.KEPT)
def test_near_secrets_stay(text):
    assert redact(text) == text


def test_values_are_copied_and_never_changed():
    value = {"content": "password: hunter2", "meta": {"api_key": "x", "n": [1, 2.5, None, True]}}
    before = copy.deepcopy(value)

    clean = redacted(value)

    assert clean == {
        "content": "password: <REDACTED>",
        "meta": {"api_key": "<REDACTED>", "n": [1, 2.5, None, True]},
    }
    assert value == before
    assert clean["meta"]["n"] is not value["meta"]["n"]


@rows("value", ["x", 7, 1.5, ["a"], {"a": "b"}, {"type": "string"}])
def test_any_value_under_a_secrets_name_is_replaced(value):
    assert redacted({"apiKey": value}) == {"apiKey": "<REDACTED>"}


def test_names_beside_their_values_are_read():
    env = [
        {"name": "DB_PASSWORD", "value": "hunter2"},
        {"name": "MODE", "value": "fast"},
        {"key": "token", "value": 1},
    ]

    assert [entry["value"] for entry in redacted(env)] == ["<REDACTED>", "fast", "<REDACTED>"]


def test_arguments_and_headers_in_lists_are_read():
    assert redacted(["tool", "--password", "hunter2", "--port", "1"]) == [
        "tool",
        "--password",
        "<REDACTED>",
        "--port",
        "1",
    ]
    assert redacted(["--token=x", "y"]) == ["--token=<REDACTED>", "y"]
    assert redacted(["Authorization", "x"]) == ["Authorization", "<REDACTED>"]
    assert redacted(["--token", 1, "required"]) == ["--token", 1, "required"]
    assert redacted(["token", "name"]) == ["token", "name"]
    assert redacted(("--token", "x")) == ("--token", "<REDACTED>")


def test_docker_credentials_are_replaced():
    config = {"auths": {"r": {"auth": "Ym9iOmh1bnRlcjI="}}, "auth": "required"}

    assert redacted(config) == {"auths": {"r": {"auth": "<REDACTED>"}}, "auth": "required"}
    assert redacted(config, rules([r"\d{9}"], builtin=False)) == config


def test_keys_are_redacted_and_stay_distinct():
    keys = {corpus.SHAPES["github-classic"]: 1, corpus.SHAPES["github-oauth"]: 2, 3: "x"}

    assert redacted(keys) == {"<REDACTED>": 1, "<REDACTED> 2": 2, 3: "x"}


def test_values_nested_too_deep_are_replaced():
    value = "hunter2"
    for _ in range(MAX_DEPTH * 20):
        value = [{"a": value}]

    clean, depth = redacted(value), 0
    while clean != "<REDACTED>":
        clean, depth = (clean[0] if isinstance(clean, list) else clean["a"]), depth + 1

    assert depth == MAX_DEPTH


def test_own_patterns_replace_their_match_or_their_groups():
    own = rules([r"ACME-\d+", r"ward (\d+)(?:, bed (\d+))?"])

    assert redact("ACME-12: ward 7, bed 3; ward 8; sk-" + "1" * 20, own) == (
        "<REDACTED>: ward <REDACTED>, bed <REDACTED>; ward <REDACTED>; <REDACTED>"
    )
    assert redacted({"a": ["ACME-1"]}, own) == {"a": ["<REDACTED>"]}


def test_keys_without_a_space_between_them_are_all_replaced():
    keys = [corpus.SHAPES[name] for name in ("age", "databricks", "github-classic")]

    assert redact("".join(keys)) == "<REDACTED>" * 3


def test_the_code_of_the_page_on_security_prints_its_output():
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    code, shown = (
        re.findall(rf"^```{name}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
        for name in ("python", "text")
    )

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})

    assert printed.getvalue() == shown


def test_own_patterns_leave_placeholders_alone():
    own = rules([r"[A-Z]{4,}"])

    once = redact("SECRETS of token=abc", own)

    assert once == redact(once, own) == "<REDACTED> of token=<REDACTED>"


def test_the_built_in_rules_can_be_left_out():
    own = rules([r"ward \d+"], builtin=False)

    assert redact("password: hunter2 in ward 7", own) == "password: hunter2 in <REDACTED>"
    assert redacted({"password": "x", "args": ["--token", "y"]}, own) == {
        "password": "x",
        "args": ["--token", "y"],
    }
    assert rules([]) == DEFAULT == Rules()


@rows("pattern", ["(", "[a", "*", "(?P<a>x)(?P<a>y)", 7])
def test_invalid_patterns_are_rejected(pattern):
    with pytest.raises(InvalidInput, match="is not a regular expression") as refused:
        rules(["ok", pattern])
    assert refused.value.where == "redaction.patterns[1]"


def test_a_pattern_that_matches_the_empty_text_is_rejected():
    with pytest.raises(InvalidInput, match="matches the empty text") as refused:
        rules(["a*"])
    assert refused.value.where == "redaction.patterns[0]"


HOSTILE = [
    "a", "key", "token: ", "token=", "token: a, ", "token = {", '"token":{', '"token":[', "password: see ", "://a", "://a:b",
    "eyJ", "eyJaaaaaaaa.", "-eyJ", "sk-", corpus.BEGIN % "", corpus.END % "", corpus.BEGIN % "" + "\n" + "A" * 64 + "\n",
    "A" * 20 + "\n", "\\n", " ", "\\", "'", '"', "token: '", 'token: \\"', "password '", "<password>", "--token ", "Bearer ",
    "?sig=", "login a ", " -u a:", "secret: |\n  a\n", "secret: |\n \n", "token: f(", "token: x[", "[", "key\\\\\\\\", "token=a&",
    "your token: see ", "\ntoken: see", "AKIA", "123456789:AA", "SG.aaaaaaaaaaaaaaaa.", "token: int[", "token: str | ",
    "token: \n", "token: " + " " * 50, "token=\t", 'token="""${', "İtoken: a",
    "mysql ", "mysql -p", "mysql -p'", "mysql -p'\\", 'mysql;"', "mysql\\\n", "sshpass ", "sshpass -P a ", "sshpass -p'", "''", "IDENTIFIED BY '",
    "IDENTIFIED BY \\", "identified with a ", "user a identified by 'b ", "SET PASSWORD FOR a", "SET PASSWORD FOR a='", '"auth":"', "auth\\",
    "define('key',", "define('DB_PASSWORD', '", "set('token','a')", "密码：", "密码：f()", "token:f()", "пароль", "mot de passe : a",
]  # fmt: skip
# Linear, these take a fraction of a second; quadratic, minutes.
HOSTILE_CHARS = 1 << 17
GIVE_UP_SECONDS = 30


@pytest.fixture
def _gives_up():
    """Stop a test that has used the processor for far too long; other processes do not count."""

    def stop(*_):
        raise AssertionError("it does not finish")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVE_UP_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.slow
@pytest.mark.usefixtures("_gives_up")
@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_keeps_redaction_from_finishing(unit):
    text = unit * (HOSTILE_CHARS // len(unit))

    once = redact(text)

    assert len(once) <= len(text) * len("<REDACTED>")


def test_only_texts_without_a_secret_are_remembered_and_only_so_many(monkeypatch):
    monkeypatch.setattr(redact_module, "_CLEAN", set())
    monkeypatch.setattr(redact_module, "_CLEAN_CHARS", [0])
    monkeypatch.setattr(redact_module, "_MOST_CLEAN", 3)
    monkeypatch.setattr(redact_module, "_MOST_CLEAN_CHARS", 40)

    for text in ("one", "password=hunter2abc", "two", "three", "four", "x " * 18, "y " * 18, "z " * 30):
        redact_module.redact(text)
        assert "password=hunter2abc" not in redact_module._CLEAN
        assert len(redact_module._CLEAN) <= 3
        assert sum(map(len, redact_module._CLEAN)) <= 40


def test_a_text_that_the_builtin_rules_leave_is_read_by_the_rules_of_a_caller():
    assert redact_module.redact("see ticket QX-4711") == "see ticket QX-4711"

    own = redact_module.rules(["QX-[0-9]+"])
    assert redact_module.redact("see ticket QX-4711", own) == "see ticket <REDACTED>"
    bare = redact_module.rules([], builtin=False)
    assert redact_module.redact("password=hunter2abc", bare) == "password=hunter2abc"
    assert redact_module.redact("password=hunter2abc") == "password=<REDACTED>"


@rows("letter", ["a", "A", "<", "=", "-", "/"])
def test_a_text_of_one_letter_costs_no_more_than_a_few_texts_of_words(letter):
    def cost(text):
        return min(-time.process_time() + (redact(text + end), time.process_time())[1] for end in ("", " "))

    cost("the plan holds for now " * 10)  # compiles what is compiled once

    assert cost(letter * 60_000) < 10 * cost(f"{letter} the plan holds " * 4_000)  # a text is redacted once
