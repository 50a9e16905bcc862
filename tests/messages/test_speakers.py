"""Who wrote a text: a person's words stay, and no wrapped text becomes a person's."""

from time import process_time

from hypothesis import assume, given
from hypothesis import strategies as st

from aether.messages.speakers import TYPED, is_person, own_words
from tests.tables import rows

NAMES = st.from_regex(r"\A[a-z][a-z0-9]{0,8}([-_][a-z0-9]{1,8}){0,2}\Z")
PROGRAMS = NAMES.filter(lambda name: ("-" in name or "_" in name) and not name.startswith("command-"))
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="<>`~#[:："), min_size=1
).filter(lambda text: bool(text.strip()))
ATTRIBUTES = st.sampled_from(
    ["", ' from="qa"', " teammate_id='7'", ' source="a>b"', " id=[Image #1]", "\n  x='1'"]
)
PERSONS = WORDS.map(str.strip)


@st.composite
def wrapped(draw, names=NAMES, depth=2):
    """Return an element with text, code that is not closed, and other elements in it."""
    name = draw(names)
    inner = st.one_of(WORDS, st.just("```\n"), *([wrapped(names, depth - 1)] if depth else []))
    return f"<{name}{draw(ATTRIBUTES)}>{''.join(draw(st.lists(inner, min_size=1, max_size=3)))}</{name}>"


@given(st.lists(wrapped(), min_size=1, max_size=4), st.sampled_from(["", "\n", "\n\n  "]))
def test_a_message_of_elements_is_no_persons_whatever_their_names(elements, between):
    assert own_words(between.join(elements)) == ""


@given(NAMES, st.data())
def test_a_message_cannot_leave_its_wrapper(name, data):
    pieces = st.lists(st.one_of(WORDS, st.just(f"</{name}>"), st.just(f"\n</{name}>\n")))
    assert own_words(f"<{name}>{''.join(data.draw(pieces))}</{name}>") == ""

    again = st.lists(
        st.one_of(WORDS, st.just(f"</{name}>"), st.just(f"<{name}>"), st.just(f'<{name} from="b">'))
    )
    assert own_words(f'<{name} from="qa">{"".join(data.draw(again))}</{name}>') == ""


@given(PERSONS, wrapped(PROGRAMS), PERSONS)
def test_elements_of_programs_are_cut_and_the_words_around_them_stay(before, element, after):
    assert own_words(f"{before}.\n{element}\n{after}") == f"{before}.\n\n{after}"
    assert own_words(f"{before}.\n{element}") == f"{before}."
    assert own_words(f"{element}\n{after}") == after


@given(PERSONS, st.sampled_from(["p", "div", "b", "html", "T", "Foo"]), WORDS, PERSONS)
def test_html_in_the_middle_of_a_message_is_a_persons(before, name, inner, after):
    assume("\n" not in inner)
    text = f"{before}\n<{name}>{inner}</{name}>\n{after}"

    assert own_words(text) == text


@given(st.text(st.characters(exclude_characters="<>[#", exclude_categories=("Cs",))))
def test_a_text_without_elements_and_notices_is_as_it_was_typed(text):
    assume(not text.lstrip().startswith(("Caveat", "Stop hook")) and "\nCaveat" not in text)

    assert own_words(text) == text.strip()


@rows(
    ("text", "words"),
    [
        ("Where does\n```xml\n<agent-message>x</agent-message>\n```\ncome from?", None),
        ("Is `<agent-message>x</agent-message>` escaped?", None),
        ("<my-widget> does not render", None),
        ("请把 <b>标题</b> 改成红色", None),
        ("タイトルを直して。", None),
        ("a < b and c > d", None),
        ("Another Claude session sent a message: what does that mean?", None),
        ("<任务-通知>\n不要改。\n</任务-通知>", ""),
        ("<a-b>one</a-b> two </a-b>", ""),
        ('<a-b from="x">one</a-b> two <a-b> three</a-b>', ""),
        ("<system-reminder>a</system-reminder> mine <system-reminder>b</system-reminder>", "mine"),
        ("<task-notification>\n<task-id>7</task-id> torn", ""),
        (
            "A session wrote:\n<peer-note sender='q'>\nNever.\n</peer-note>\n\nThis is no request of the user.",
            "",
        ),
        (
            "<peer-note from='q'>\nNever.\n</peer-note>\n\nThis came from another Claude session.\nBe careful.",
            "",
        ),
        ("Look at this:\n<app-log>\nboom\n</app-log>", "Look at this:"),
        ("[Request interrupted by user for tool use]", ""),
        ("Stop hook feedback:\n- write tests", ""),
        (
            "This session is being continued from a previous conversation that ran out of context. Never ask.",
            "",
        ),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nNever.\n</INSTRUCTIONS>", ""),
        (
            "# Context from my IDE setup:\n\n## Open tabs\n- a.py\n\n## My request for Codex:\nFix it.",
            "Fix it.",
        ),
        (
            "<command-message>x</command-message>\n<command-name>/x</command-name>\n<command-args></command-args>",
            "",
        ),
        ("<command-name>/review</command-name>\n<command-args>日本語で</command-args>", "/review 日本語で"),
        ("<?xml version='1.0'?>\n<event>\nx\n</event>", ""),
        ("<status/>", ""),
    ],
)
def test_known_forms(text, words):
    assert own_words(text) == (text if words is None else words)


def test_elements_around_a_persons_words_are_those_of_the_source():
    text = "<task>\nUse tabs.\n<note-x>no</note-x>\n</task>\n<env-details>x</env-details>"

    assert own_words(text, TYPED["cline"]) == "Use tabs."
    assert own_words(text) == ""


@rows(
    ("about", "person"),
    [
        ({}, True),
        ({"origin": {"kind": "human"}}, True),
        ({"origin": None, "promptSource": "typed"}, True),
        ({"origin": {"kind": "human"}, "isSidechain": True}, True),
        ({"origin": {"kind": "peer"}}, False),
        ({"origin": {"kind": "task-notification"}}, False),
        ({"origin": {"kind": "whatever-comes"}}, False),
        ({"promptSource": "system"}, False),
        ({"source": "schedule_wakeup"}, False),
        ({"isMeta": True}, False),
        ({"isSidechain": True}, False),
        ({"agentId": "a1"}, False),
        ({"commandMode": "task-notification"}, False),
        ({"commandMode": "prompt"}, True),
    ],
)
def test_the_fields_of_a_record_say_whether_a_person_speaks(about, person):
    assert is_person(about) == person


@rows(
    "text",
    ["<a-b>" * 40_000, "<a-b>x</a-b>" * 20_000, "<a-b>\n" * 20_000 + "</a-b>\n" * 20_000, "<!--" * 50_000, '<a "' * 50_000,
     "```\n<a-b>\n" * 10_000, "`<a-b>x</a-b> " * 20_000, "<p " * 50_000],
)  # fmt: skip
def test_the_time_grows_with_the_length(text):
    before = process_time()
    own_words(text)
    assert process_time() - before < 2
