import json

import pytest

from aether.architects import dialog
from aether.architects.base import Settings
from aether.architects.model_server import Reply
from aether.architects.request import session_request, summary_request
from aether.errors import BackendFailed
from tests.architects import fakes

NOTES = [fakes.item(nth, f"Note {nth}. " + "word " * 200) for nth in range(4)]


def talk(request, *texts, settings=None, **limits):
    """Converse with a model that says `texts`, the last one again and again; return it with its prompts."""
    script, heard = list(texts), []

    def exchange(prompt, _room, _form):
        heard.append(prompt)
        text = script.pop(0) if len(script) > 1 else script[0]
        return text if isinstance(text, Reply) else Reply(200, {"text": text})

    model = dialog.Model(
        name="fake",
        server="nowhere",
        exchange=exchange,
        read=lambda body: dialog.Answer("whole", body["text"], "m", 10, 5),
        forms=({},),
        fixes={},
        **({"input_tokens": 100_000, "answer_tokens": 6_000, "room": 500} | limits),
    )
    completion = dialog.converse(
        request, model, settings=settings or Settings(backoff_seconds=0), count=fakes.quarter
    )
    return completion, heard


def test_what_fits_is_one_call_with_the_prompt_of_the_request():
    request = session_request(fakes.handoff(*NOTES))

    completion, heard = talk(request, "anything")

    assert heard == [request.prompt]
    assert completion == ("anything", "fake", "m", 10, 5, None, 1)


def test_an_answer_too_large_for_one_call_is_asked_for_in_parts():
    completion, heard = talk(
        session_request(fakes.handoff(*NOTES)), fakes.session("A."), fakes.session("B."), answer_tokens=220
    )

    assert len(heard) == 2
    assert json.loads(completion.text)["summary"] == "A. B."
    assert (completion.calls, completion.input_tokens, completion.output_tokens) == (2, 20, 10)


def test_an_input_too_large_for_the_window_is_sent_in_parts_that_fit():
    request = session_request(fakes.handoff(*NOTES))
    window = fakes.quarter(request.prompt) - 300

    _, heard = talk(request, fakes.session(), input_tokens=window)

    assert len(heard) > 1
    assert all(fakes.quarter(prompt) <= window for prompt in heard)


def test_a_part_that_is_no_session_is_asked_for_once_more_with_the_reason():
    completion, heard = talk(
        session_request(fakes.handoff(*NOTES)),
        "Sorry, what?",
        fakes.session("A."),
        fakes.session("B."),
        answer_tokens=220,
    )

    assert dialog.NOT_A_SESSION in heard[1]
    assert json.loads(completion.text)["summary"] == "A. B."
    assert completion.calls == 3


def test_a_part_that_stays_no_session_is_a_failure():
    with pytest.raises(BackendFailed, match="answer to part 1 of 2 was not a session"):
        talk(session_request(fakes.handoff(*NOTES)), "Sorry, what?", answer_tokens=220)


def test_later_parts_get_what_the_parts_before_say():
    first = fakes.session("A.", open=[{"text": "The lamp is broken.", "items": ["1"], "quote": "Note 0"}])

    completion, heard = talk(
        session_request(fakes.handoff(*NOTES)), first, fakes.session("B."), answer_tokens=220
    )

    assert "part_1/open/0 open: The lamp is broken." in heard[1]
    assert json.loads(completion.text)["open"][0]["quote"] == "Note 0"


def test_a_part_that_turns_out_too_long_starts_over_in_smaller_parts():
    completion, heard = talk(
        session_request(fakes.handoff(*NOTES)),
        fakes.session("A."),
        Reply(413, {}, "too large"),
        fakes.session("C."),
        answer_tokens=220,
    )

    assert len(heard) == 2 + 4
    assert json.loads(completion.text)["summary"] == "C. C. C. C."
    assert completion.calls == 6


def test_a_small_request_that_is_too_long_is_given_up_after_one_call():
    script = [Reply(400, {"error": "prompt too long"})]

    with pytest.raises(BackendFailed, match=r"even in parts of 200 tokens \(prompt too long\)"):
        talk(session_request(fakes.handoff(fakes.item(1, "short"))), *script, input_tokens=10)


def test_halving_ends_at_its_limit(monkeypatch):
    monkeypatch.setattr(dialog, "MOST_HALVINGS", 1)

    with pytest.raises(BackendFailed, match="even in parts of"):
        talk(session_request(fakes.handoff(*NOTES)), Reply(413, {}, "too large"))


def test_feedback_goes_to_every_part():
    _, heard = talk(
        session_request(fakes.handoff(*NOTES), feedback="name the files"), fakes.session(), answer_tokens=220
    )

    assert len(heard) == 2
    assert all("name the files" in prompt for prompt in heard)


SAID = [fakes.said(nth, f"Note {nth}. " + "word " * 200) for nth in range(4)]


def test_a_summary_that_fits_is_one_call_for_plain_text():
    request = summary_request(fakes.summary_task())
    forms = []

    def exchange(prompt, _room, form):
        forms.append((prompt, form))
        return Reply(200, {"text": "Done: the login."})

    model = dialog.Model(
        "fake", "nowhere", exchange, lambda body: dialog.Answer("whole", body["text"]), ({"format": "json"}, {}), {},
        100_000, 6_000, 500,
    )  # fmt: skip
    completion = dialog.converse(request, model, settings=Settings(backoff_seconds=0), count=fakes.quarter)

    assert completion.text == "Done: the login."
    assert forms == [(request.prompt, {})]


def test_a_long_summary_is_written_in_turn_each_part_after_the_one_before():
    request = summary_request(fakes.summary_task(*SAID, previous="The start."), feedback="It is empty.")
    window = fakes.quarter(request.prompt) - 300

    completion, heard = talk(request, "First half.", "Both halves.", input_tokens=window)

    assert len(heard) == 2
    assert '{"text":"The start."}' in heard[0]
    assert '{"text":"First half."}' in heard[1]
    assert "Note 0." in heard[0]
    assert "Note 0." not in heard[1]
    assert all("It is empty." in prompt and fakes.quarter(prompt) <= window for prompt in heard)
    assert (completion.text, completion.calls) == ("Both halves.", 2)


def test_a_summary_whose_parts_are_too_long_starts_over_in_smaller_ones():
    request = summary_request(fakes.summary_task(*SAID))

    completion, heard = talk(request, Reply(413, {}, "too large"), "One.", "Two.")

    assert len(heard) == 3
    assert completion.text == "Two."


def test_a_summary_that_no_part_is_small_enough_for_is_given_up():
    with pytest.raises(BackendFailed, match="even in parts of 200 tokens"):
        talk(summary_request(fakes.summary_task(*SAID)), Reply(413, {}, "too large"))
