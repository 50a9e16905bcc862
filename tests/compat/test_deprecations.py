"""Parameters of adapters without effect say so when they are passed."""

import pytest

from aether.compat.archive_manager import ArchivalManager, CompressionEngine


def test_a_model_name_warns_and_its_absence_does_not():
    CompressionEngine()

    with pytest.warns(UserWarning, match="model_name has no effect") as caught:
        CompressionEngine("facebook/bart-large-cnn")
    assert caught[0].filename == __file__


def test_a_compressed_form_warns(tmp_path):
    manager = ArchivalManager(tmp_path)
    talk = {"id": "talk", "messages": [{"role": "user", "content": "Use SQLite."}]}

    with pytest.warns(UserWarning, match="compressed has no effect"):
        manager.archive_conversation(talk, object())
