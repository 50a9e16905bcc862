import os
import re

import pytest

from aether.errors import InvalidDocument, StorageFailed
from aether.store import config
from aether.store.config import KEYS, Config, load
from tests.tables import rows


def test_without_a_file_there_are_defaults(tmp_path):
    assert load(tmp_path) == Config()


def test_every_key_can_be_set(tmp_path):
    tables = {}
    for key, field in KEYS.items():
        table, name = key.split(".")
        value = {str: '"x"', int: "7", float: "7.5", bool: "true"}[type(Config._field_defaults[field])]
        tables.setdefault(table, []).append(f"{name} = {value}")
    text = "\n".join(f"[{table}]\n" + "\n".join(lines) for table, lines in tables.items())
    (tmp_path / "config.toml").write_text(text)

    found = load(tmp_path)

    assert set(found) == {"x", 7, 7.5, True}
    assert set(KEYS.values()) == set(Config._fields)


def test_a_whole_number_stands_for_a_float(tmp_path):
    (tmp_path / "config.toml").write_text("[store]\nlock_timeout_seconds = 3\n")

    assert load(tmp_path).lock_timeout_seconds == 3.0


@rows(
    ("text", "words"),
    [
        ("[store]\nfold = 1", "'store.fold' is not a setting. Did you mean store.fold_bytes?"),
        ("[other]\nthing = 1", "'other.thing' is not a setting. Use one of architect"),
        ("store = 1", "'store' is not a setting"),
        ("[store]\nfold_bytes = -1", "store.fold_bytes is -1. Use a number that is not negative"),
        ("[store]\nfold_bytes = true", "store.fold_bytes is True"),
        ("[store]\nfold_bytes = 1.5", "store.fold_bytes is 1.5"),
        ("[store]\nlock_timeout_seconds = nan", "lock_timeout_seconds is nan"),
        ("[store]\nlock_timeout_seconds = -0.5", "lock_timeout_seconds is -0.5"),
        ("[architect]\nmodel = 1", "architect.model is 1. Use a text"),
        ("[telemetry]\ncontent = 1", "telemetry.content is 1. Use true or false"),
        ("[store", "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_path(tmp_path, text, words):
    (tmp_path / "config.toml").write_text(text)

    with pytest.raises(InvalidDocument, match=re.escape(words)) as caught:
        load(tmp_path)

    assert caught.value.where == str(tmp_path / "config.toml")


def test_text_in_another_encoding_is_not_toml(tmp_path):
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(InvalidDocument, match="not TOML"):
        load(tmp_path)


def test_a_file_that_cannot_be_read_is_said_to_be_so(tmp_path):
    (tmp_path / "config.toml").mkdir()

    with pytest.raises(StorageFailed, match="config"):
        load(tmp_path)


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[store]\nfold_bytes = 1\n")
    assert load(tmp_path).fold_bytes == 1

    path.write_text("[store]\nfold_bytes = 22\n")

    assert load(tmp_path).fold_bytes == 22


def test_an_unchanged_file_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "config.toml").write_text("[store]\nfold_bytes = 1\n")
    load(tmp_path)
    monkeypatch.setattr(config, "_parse", os.abort)

    assert load(tmp_path).fold_bytes == 1


def test_each_setting_is_read_by_itself_where_one_is_wrong(tmp_path):
    (tmp_path / "config.toml").write_text(
        "[claude]\nprivate_paths = '.env*'\nnew_key = 1\ncapture = 'no'\n[store]\nfold_bytes = 7\n"
    )

    found, wrong = config.tolerant(tmp_path)

    assert found == Config(claude_private_paths=".env*", fold_bytes=7)
    assert wrong.keys() == {"claude.new_key", "claude.capture"}
    assert config.or_default(tmp_path) == found


def test_a_file_that_cannot_be_read_at_all_has_the_defaults(tmp_path):
    (tmp_path / "config.toml").write_text("[claude\n")

    found, wrong = config.tolerant(tmp_path)

    assert found == Config()
    assert wrong.keys() == {""}
    assert config.tolerant(tmp_path / "nowhere") == (Config(), {})
