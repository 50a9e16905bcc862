from aether.redact.assignments import without_assigned
from tests.tables import rows


@rows(
    ("text", "redacted"),
    [
        ("password: hunter2", "password: <REDACTED>"),
        ("a=1&token=x&b=2", "a=1&token=<REDACTED>&b=2"),
        ('{"token": "x", "max_tokens": 512}', '{"token": "<REDACTED>", "max_tokens": 512}'),
        ('{"token": ["x", {"y": "]"}], "n": 1}', '{"token": <REDACTED>, "n": 1}'),
        ("secret: |\n  a\n\n  b\nc: d", "secret: |\n  <REDACTED>\nc: d"),
        ("password: x)", "password: <REDACTED>)"),
        ("İ password: x", "İ password: <REDACTED>"),
        ("f(password='x', token=token)", "f(password='<REDACTED>', token=token)"),
        ("<secret>x</secret>", "<secret><REDACTED></secret>"),
        ("<secret>x", "<secret>x"),
        ("password 'x y'", "password '<REDACTED>'"),
        ("token 'x y'", "token 'x y'"),
        ("token: '''x\ny", "token: '''<REDACTED>"),
        ('token: \\"x', 'token: \\"<REDACTED>'),
        ("token: 'x\ny", "token: '<REDACTED>\ny"),
        ("PWD=hunter2", "PWD=<REDACTED>"),
        ("password=Secret", "password=<REDACTED>"),
        ("the password: correct horse", "the password: <REDACTED>"),
        ("-password hunter2 -x", "-password <REDACTED> -x"),
        ("token: <REDACTED>", "token: <REDACTED>"),
    ],
)  # fmt: skip
def test_the_value_goes_and_nothing_else(text, redacted):
    assert without_assigned(text) == redacted
    assert without_assigned(redacted) == redacted


def test_an_object_that_never_closes_is_gone_through_for_what_it_holds():
    text = '{"credentials": {"user": "bob", "password": "hunter2"'

    assert without_assigned(text) == '{"credentials": {"user": "bob", "password": "<REDACTED>"'


def test_so_many_objects_never_close_and_then_none_is_looked_for():
    text = '"secrets": {' * 30 + '"token": "hunter2", "secrets": ["a"]'

    assert "hunter2" not in without_assigned(text)
    assert without_assigned(text).endswith('"secrets": ["a"]')


@rows("length", [*range(1018, 1026), 10_000])
def test_a_value_of_any_length_goes_whole(length):
    secret = "k" * length + ",rest" + "y" * 100

    assert without_assigned(f"INFO token: {secret}\nn: 1") == "INFO token: <REDACTED>\nn: 1"
