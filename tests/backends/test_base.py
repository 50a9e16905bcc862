import inspect

import pytest

from aether.backends import backend
from aether.backends.base import Backend


@pytest.mark.parametrize("spec", ["anthropic", "openai", "ollama", "command:true"])
def test_a_backend_module_offers_what_the_protocol_says(spec):
    module, _ = backend(spec)

    promised = inspect.signature(Backend.complete).parameters
    assert list(inspect.signature(module.complete).parameters) == list(promised)[1:]
    assert isinstance(module.NAME, str)
