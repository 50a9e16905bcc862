"""Shell completion."""

from __future__ import annotations

from aether.cli.main import main
from tests.tables import rows


@rows("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_command_and_its_variable(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "_AETHER_COMPLETE" in capsys.readouterr().out


def test_words_are_completed(monkeypatch, capsys):
    monkeypatch.setenv("_AETHER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "aether memory se")
    monkeypatch.setenv("COMP_CWORD", "2")

    assert main([]) == 0

    assert "plain,search" in capsys.readouterr().out
