import pytest

from aether.redact.assignments import is_docker_auth, without_commands
from tests.redact import corpus
from tests.tables import rows

COMMANDS = [
    case
    for case in corpus.ASSIGNED
    if case.name.startswith(("mysql", "sshpass", "identified", "set password", "docker auth"))
]


@rows("case", COMMANDS, ids=lambda case: case.name)
def test_the_password_goes_and_what_is_around_it_stays(case):
    clean = without_commands(case.text)

    assert not [secret for secret in case.secrets if secret in clean]
    assert not [part for part in case.kept if part not in clean]
    assert without_commands(clean) == clean


@pytest.mark.parametrize("value", ["Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI"])
def test_a_user_and_a_password_in_base64_are_credentials_of_docker(value):
    assert is_docker_auth(value)


@rows("value", ["", "required", "oauth2", "Og==", "bm8gY29sb24gaGVyZQ==", "über:alles", "Ym9i:aA="])
def test_other_words_are_none(value):
    assert not is_docker_auth(value)
