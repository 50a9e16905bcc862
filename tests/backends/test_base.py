import inspect

from aether.backends import backend
from aether.backends.base import Backend
from tests.tables import rows


@rows("spec", ["anthropic", "openai", "ollama", "command:true"])
def test_a_backend_module_offers_what_the_protocol_says(spec):
    module, _ = backend(spec)

    promised = inspect.signature(Backend.complete).parameters
    assert list(inspect.signature(module.complete).parameters) == list(promised)[1:]
    assert isinstance(module.NAME, str)
