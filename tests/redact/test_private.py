"""Private: blocks that are closed, nested, torn; paths by every way to name them."""

from __future__ import annotations

from aether.redact.redact import is_private, without_blocks, without_whole_blocks
from aether.store.keys import Config
from tests.tables import rows


@rows(
    ("text", "left"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a <PRIVATE reason='x'>b</Private > c", "a  c"),
        ("a <private>b", "a "),
        ("a <private", "a "),
        ("a <private <b>> b</private> c", "a  c"),
        ("a <private>b </aether-memory> c</private> d", "a  d"),
        ("a <private reason='x<y'>b</private> c", "a  c"),
        ("a <private/> b", "a  b"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a <aether-memory kind='brief'>b</aether-memory> c", "a  c"),
        ("a <private>b <aether-memory>c</private> d", "a "),
        ("a </private> b", "a  b"),
        ("<privately> a </privately>", "<privately> a </privately>"),
        ("no block", "no block"),
    ],
)
def test_blocks_are_removed(text, left):
    assert without_blocks(text) == left


@rows(
    ("text", "left"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a <private>b <private>c</private> d</private> e <private>f</private> g", "a  e  g"),
        ("a <private reason='x<y'>b</Private > c", "a  c"),
        ("a <private>b <aether-memory>c</private> d", "a  d"),
        ("a <private>b </aether-memory> c</private> d", "a  d"),
        ("a <private> b", "a <private> b"),
        ("a <private", "a <private"),
        ("a </private> b", "a </private> b"),
        ("<private> a <private>b</private> c", "<private> a  c"),
        ("<pri<private>a</private>vate>b</private>c", "c"),
        ("a <aether-memory kind= b </Aether-memory c", "a ‹aether-memory kind= b ‹/Aether-memory c"),
        ("<privately> a </privately>", "<privately> a </privately>"),
        ("no block", "no block"),
    ],
)
def test_a_statement_loses_only_closed_blocks(text, left):
    assert without_whole_blocks(text) == left
    assert without_whole_blocks(left) == left


PATTERNS = ".env*, secrets/**, *.pem, /srv/keys, ~/diary, docs/private/"


@rows(
    "path",
    [
        ".env", "config/.env.local", "secrets", "secrets/a/b.txt", "./secrets/../secrets/a", "app/secrets/x", "tls/key.pem",
        "/srv/keys/a", "/srv/keys", "~/diary/1.md", "docs/private/plan.md", "/proj/.env", "../proj/.env",
    ],
)  # fmt: skip
def test_a_private_path_is_found_however_it_is_named(path):
    assert is_private({"file_path": path}, PATTERNS, "/proj")
    assert is_private({"command": f"cat '{path}' | wc -l"}, PATTERNS, "/proj")


@rows("path", ["env.py", "secret/a", "my-secrets.txt", "/srv/keyset", "docs/public/plan.md", ""])
def test_other_paths_are_not_private(path):
    assert not is_private({"file_path": path}, PATTERNS, "/proj")


def test_a_command_that_writes_into_a_private_file_is_private():
    assert is_private({"command": "echo TOKEN=1 >.env;ls"}, PATTERNS, "/proj")


@rows(
    "given",
    [
        {"command": ["bash", "-lc", "cat .env"]},
        {"cmd": ["rm", "secrets/a"]},
        {"input": "*** Begin Patch\n*** Update File: secrets/a.txt\n+x\n*** End Patch"},
        {"patch": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: .env\n*** End Patch"},
    ],
)
def test_a_command_in_words_and_a_patch_name_paths_too(given):
    assert is_private(given, PATTERNS, "/proj")


@rows(
    "path", [".env", "app/.env.production", "tls/server.pem", "a.key", "~/.ssh/config", "id_ed25519.pub", "/root/.aws/credentials"]
)  # fmt: skip
def test_usual_files_of_secrets_are_private_by_default(path):
    assert is_private({"file_path": path}, Config().claude_private_paths, "/proj")


def test_in_a_private_directory_every_name_is_private_and_without_patterns_none_is():
    assert is_private({"file_path": "a.txt"}, "secrets/**", "/proj/secrets/deep")
    assert not is_private({"file_path": ".env"}, " , ", "/proj")


def test_a_command_too_long_to_search_is_private_if_any_pattern_is_set():
    long = {"command": "cat <<EOF\n" + "word " * 40_000}

    assert is_private(long, PATTERNS, "/proj")
    assert not is_private(long, " , ", "/proj")


def test_a_heredoc_of_a_hundred_thousand_letters_is_looked_through():
    words = " ".join(str(nth) for nth in range(20_000))

    assert not is_private({"command": f"cat <<EOF\n{words}\nEOF"}, PATTERNS, "/proj")
    assert is_private({"command": f"cat <<EOF\n{words} .env\nEOF"}, PATTERNS, "/proj")


def test_a_link_to_a_private_file_is_private(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "notes").symlink_to("secrets")

    assert is_private({"file_path": "notes/a"}, PATTERNS, str(tmp_path))
    assert not is_private({"file_path": "other/a"}, PATTERNS, str(tmp_path))


def test_capitals_name_the_same_file_where_files_have_no_case(monkeypatch):
    monkeypatch.setattr("aether.redact.redact.IGNORES_CASE", True)

    assert is_private({"file_path": "Drafts/a"}, "drafts/**", "/app")
    assert is_private({"file_path": "notes/a"}, "Notes/**", "/app")
