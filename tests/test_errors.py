import pickle

import pytest

from aether import errors
from aether.errors import AetherError
from tests.tables import rows


def kinds(root=AetherError):
    """Return every error class, the root first."""
    return [root, *(kind for below in root.__subclasses__() for kind in kinds(below))]


def ours():
    return [kind for kind in kinds() if kind.__module__ == errors.__name__]


def test_every_error_has_an_exit_code_of_its_own():
    codes = [kind.exit_code for kind in ours()]

    assert sorted(codes) == list(range(1, len(codes) + 1))


def test_the_tree_in_the_docstring_names_every_error_with_its_exit_code():
    for kind in ours():
        line = next(line for line in errors.__doc__.splitlines() if line.split()[:1] == [kind.__name__])
        assert line.endswith(f"exit {kind.exit_code}")


@rows("kind", ours())
def test_every_error_says_when_it_happens(kind):
    assert kind.__doc__.endswith(".")


@rows("kind", ours())
def test_an_error_without_advice_cannot_be_raised(kind):
    with pytest.raises(TypeError, match="fix"):
        kind("what")


@rows("kind", ours())
def test_a_message_says_where_what_and_what_to_do(kind):
    assert str(kind("It broke.", fix="Mend it.", where="here")) == "here: It broke. Mend it."
    assert str(kind("It broke.", fix="Mend it.")) == "It broke. Mend it."


@rows("kind", ours())
def test_an_error_survives_pickling(kind):
    error = pickle.loads(pickle.dumps(kind("what", fix="fix", where="where")))

    assert (type(error), error.what, error.fix, error.where, error.code) == (
        kind, "what", "fix", "where", kind.__name__,
    )  # fmt: skip


def test_a_long_value_is_shortened():
    assert len(errors.shown("x" * 1000)) == errors.SHOWN_CHARS
    assert errors.shown("x" * 1000).endswith("…")
    assert errors.shown(7) == "7"
