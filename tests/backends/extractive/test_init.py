from aether.backends import extractive
from aether.backends.base import Request, Settings
from aether.backends.extractive import NAME, complete
from aether.tokens.count import session_tokens
from tests.backends.extractive.handoffs import count, handoff, item, session, signal, texts


def notes(number):
    return [
        item(
            f"We moved module{at} into src/part{at}.py because build {at * 7} took {at + 3} minutes on machine{at}."
        )
        for at in range(number)
    ]


def test_the_completion_names_the_backend_and_costs_nothing():
    data = handoff("The port is 8080.")

    completion = complete(Request("session", data, "", {}, 100), settings=Settings(), count=count)

    assert (completion.backend, completion.input_tokens, completion.output_tokens) == (NAME, 0, 0)
    assert extractive.NAME == "extractive"


def test_it_meets_the_target():
    data = handoff(*notes(60))

    tokens = session_tokens(session(data), count)

    assert 0.9 < tokens / data["target_tokens"] <= 1.0


def test_protected_content_is_kept_even_over_the_target():
    rules = [
        item(f"Rule {at}: never touch table {at} of the old store." * 5, "constraint") for at in range(9)
    ]
    data = handoff(*rules, target=50, protected=range(9))

    answer = session(data)

    assert {rule["content"] for rule in rules} <= set(texts(answer))
    assert session_tokens(answer, count) > 50


def test_chatter_and_exploration_go_first():
    data = handoff("Thanks, great!", "Let me look at the config file again.", *notes(40))

    said = "\n".join(texts(session(data)))

    assert "Thanks" not in said
    assert "Let me look" not in said


def test_a_repeated_statement_is_kept_once():
    data = handoff(*["We decided to use SQLite because it is simple."] * 50, *notes(20))

    assert "\n".join(texts(session(data))).count("SQLite") == 1


def test_statements_that_differ_in_a_number_or_a_negation_are_both_kept():
    data = handoff(
        "The timeout is 30.", "The timeout is 60.", "The timeout is not 30.", "The timeout is 30!", target=300
    )

    said = "\n".join(texts(session(data)))

    assert all(text in said for text in ("timeout is 30.", "timeout is 60.", "timeout is not 30."))
    assert "timeout is 30!" not in said


def test_every_changed_file_and_every_constraint_survives():
    files = [
        item(f"Changed src/deep/file{at}.py: {'it was renamed ' * 9}", "code_change") for at in range(20)
    ]
    rules = [item(f"You must never drop table {at}.", "user_input") for at in range(5)]
    data = handoff(*files, *rules, *notes(20))

    said = "\n".join(texts(session(data)))

    assert all(f"file{at}.py" in said for at in range(20))
    assert all(rule["content"] in said for rule in rules)


def test_a_signal_decides_between_equals():
    pages = [
        f"The {name} page shows {name} entries for every {name} user."
        for name in ("login", "basket", "report")
    ]
    data = handoff(*pages, target=95)

    assert "basket" not in "".join(texts(session(data)))
    assert "basket" in "".join(texts(session(data, signals=[signal("FOCUS", "basket")])))


def test_nothing_to_say_is_said():
    assert session(handoff())["summary"]
