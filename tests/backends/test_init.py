import pytest

from aether.backends import backend
from aether.errors import InvalidInput
from tests.tables import rows


@rows("name", ["anthropic", "openai", "ollama"])
def test_a_name_gives_its_module_and_no_overrides(name):
    module, overrides = backend(name)

    assert (module.NAME, overrides) == (name, {})


def test_a_command_gives_its_module_and_the_program():
    module, overrides = backend("command: jq '.a:b' ")

    assert module.NAME == "command"
    assert overrides == {"command": "jq '.a:b'"}


@rows("spec", ["", "gpt", "manual", "command", "command: ", "ollama:llama", "Anthropic"])
def test_anything_else_is_refused_with_the_names(spec):
    with pytest.raises(InvalidInput, match="extractive, anthropic, openai, ollama, manual or command"):
        backend(spec)
