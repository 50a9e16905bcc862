from aether.messages.content import arguments_text, changed, known_role, lost, unused_name
from tests.tables import rows


def test_what_is_lost_is_a_warning_and_what_is_changed_is_not():
    assert lost("x", "messages[0]", "Dropped it.").level == "warning"
    assert changed("x", "messages[0]", "Moved it.").level == "info"


@rows(
    ("role", "meant"),
    [
        ("user", "user"),
        ("ai", "assistant"),
        ("human", "user"),
        ("developer", "user"),
        ("robot", "user"),
        (["ai"], "user"),
    ],
)
def test_a_role_is_the_one_that_is_meant(role, meant):
    assert known_role(role, {"user", "assistant"}) == meant


def test_a_name_that_is_taken_or_too_long_is_numbered():
    assert unused_name("call", set(), most=40) == "call"
    assert unused_name("call", {"call", "call_2"}, most=40) == "call_3"
    assert unused_name("callings", {"call"}, most=4) == "ca_2"


@rows(("given", "text"), [("{", "{"), ({"ü": None}, '{"ü": null}'), (None, None), ([], None)])
def test_arguments_are_text_or_an_object(given, text):
    assert arguments_text(given) == text
