"""The facts of removed messages are verbatim, outlive every compaction, and are dropped in order where room is short."""

from __future__ import annotations

from aether.conversation.facts import (
    MOST_NAMES,
    PreviousSummary,
    facts_of_removed,
    merged_facts,
    names_of,
    previous_summary,
    removed_texts,
)
from aether.conversation.progress import REQUEST_CHARS
from aether.conversation.readings import names_in
from aether.conversation.room import (
    CUT,
    Sizes,
    fit_facts,
    fit_summary,
    summary_message,
)
from aether.conversation.shapes import Facts, RemovedText, Summary
from aether.conversation.summary import rendered
from aether.messages.convert import new_message, read
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.tool_calls import ErrorFact, FileFact
from aether.text.words import pluralize
from aether.tokens.count import message_tokens
from aether.tokens.counters import counter
from aether.tokens.estimate import estimate
from tests.conversation.conversations import bash, conversation, conversation_of, facts_of, model, tool, user
from tests.tables import rows

OPENING = "Fix the login in src/auth.py. Never touch the migrations."


def facts(*parts, positions=None):
    messages = conversation(*parts)
    return facts_of(messages, range(len(messages)) if positions is None else positions)


def test_the_opening_request_is_the_goal_and_whole():
    found = facts(user(OPENING))

    assert (found.goals, found.opening, found.current, found.constraints) == ((OPENING,), (), (OPENING,), ())


def test_where_the_opening_stays_the_summary_has_it_and_no_goal():
    assert facts(
        user(OPENING), user("Add a test for the logout, too, with a fake clock."), positions=[1]
    ) == Facts(opening=(OPENING,), current=("Add a test for the logout, too, with a fake clock.",))


def test_all_messages_of_a_person_are_there_as_they_were_in_any_language():
    asked = [
        "Wait, drop the login and fix the logout of the admin page instead.",
        "不要修改公共接口，并且保持旧的数据库表不变。",
        "Не трогай миграции, пока тесты не станут зелёными на всех ветках.",
        "Please port the parser of the invoices to the new reader now.",
    ]

    found = facts(user(OPENING), *(part for text in asked for part in (user(text), model("Done."))))

    assert (found.requests, found.current) == (tuple(asked[:3]), (asked[3],))


def test_after_a_summary_the_next_request_is_not_the_opening():
    asked = "Add a test for the logout, too, with a fake clock."
    found = facts(user(rendered(Summary(1, Facts(goals=(OPENING,)), "Done."))), user(asked))

    assert found == Facts(current=(asked,))


@rows(
    "text",
    [
        "<system-reminder>Never be late.</system-reminder>",
        "<aether-memory>Never be late. Build a ship.</aether-memory>",
        "This session is being continued from a previous conversation that ran out of context. Never be late.",
        "[Request interrupted by user]",
    ],
)
def test_what_nobody_asked_for_is_no_request(text):
    found = facts(user(text))

    assert (found.goals, found.requests, found.current, found.constraints) == ((), (), (), ())


def test_the_request_behind_machinery_opens_the_conversation():
    found = facts(user("<system-reminder>be brief</system-reminder>"), user(OPENING))

    assert found.goals == (OPENING,)


def test_a_brief_reply_to_a_question_is_a_decision_with_it():
    found = facts(
        user(OPENING),
        model("It works. Shall I use Redis for the sessions?"),
        user("yes"),
        model("要用 Postgres 吗？"),
        user("用 SQLite"),
        model("It is done."),
        user("Add a test for the logout, too, with a fake clock."),
    )

    assert found.decisions == (
        "Asked: Shall I use Redis for the sessions?\nAnswered: yes",
        "Asked: 要用 Postgres 吗？\nAnswered: 用 SQLite",
    )


def test_a_question_that_someone_else_answered_is_not_asked_again():
    longer = "Look at the readme first and tell me all that it says about the old login."
    found = facts(user(OPENING), model("Shall I use Redis?"), user(longer), user("yes, both"))

    assert found.decisions == ()


def test_a_summary_asks_nothing_nor_do_tools():
    asked = rendered(Summary(1, Facts(), "Shall I use Redis?"))

    assert facts(model(asked), user("keep it local")).decisions == ()
    assert facts(user("Fix a."), bash("ls", "a?"), user("keep it local")).decisions == ()


def test_answers_to_the_questions_of_a_tool_are_decisions_with_their_questions():
    answer = 'Your questions have been answered: "Which port?"="8080" notes: not 80. You can now continue.'
    found = facts(user(OPENING), tool("AskUserQuestion", answer, questions=[]))

    assert found.current[1:] == ('Asked: Which port?\nAnswered: "8080" notes: not 80',)


def test_a_refused_call_is_there_with_the_reason():
    refusal = "The user doesn't want to proceed with this tool use. So the user said:\nno mocks please"
    bare = "The user doesn't want to proceed with this tool use."
    found = facts(
        user(OPENING),
        tool("Edit", refusal, failed=True, file_path="a.py"),
        bash("make deploy", bare, failed=True),
    )

    assert found.current[1:] == ("Refused Edit: a.py: no mocks please", "Refused Bash: make deploy")


def test_rules_of_older_summaries_are_handed_on_and_nobody_judges_new_ones():
    older = Facts(constraints=("Never use mocks in the tests.",), decisions=("We chose SQLite.",))
    newer = facts(user("The rule about mocks is gone. Never use floats for money, by the way."))

    assert newer.constraints == ()
    assert merged_facts(older, newer).constraints == older.constraints
    assert merged_facts(older, newer).decisions == older.decisions


def test_calls_without_results_are_open():
    found = facts(
        user(OPENING), bash("cd app && make test", None), tool("Fetch", None, url="a\nb"), tool("Now", None)
    )

    assert found.open_calls == ("Bash: make test", "Fetch: a", "Now")


def test_a_long_argument_of_an_open_call_is_shortened():
    (shown,) = facts(tool("Fetch", None, url="x" * 500)).open_calls

    assert len(shown) == len("Fetch: ") + 120


def test_files_errors_and_names_come_from_what_is_removed():
    found = facts(
        user(OPENING),
        tool("Write", file_path="src/new.py", content="x"),
        bash("make", "error: no rule", failed=True),
        model("See run-4711."),
        tool("Write", file_path="src/late.py", content="x"),
        positions=range(6),
    )

    assert [file.path for file in found.files] == ["src/new.py"]
    assert found.errors == (ErrorFact("$ make\nerror: no rule", open=True),)
    assert found.names == ("run-4711",)


def test_an_error_of_the_last_summary_is_closed_by_what_works_now():
    before = Summary(2, Facts(errors=(ErrorFact("$ make\nno rule", open=True),)), "")

    found = facts(user(rendered(before)), bash("make", "built"))

    assert found.errors == (ErrorFact("$ make\nno rule", open=False),)


def test_of_a_long_request_the_middle_is_cut_because_a_rule_may_come_last():
    text = "Import the file. " + "Mind the gap in it. " * 200 + "Never drop a row."

    request = facts(user(OPENING), user(text), user(OPENING + " Now."), positions=[1]).requests[0]

    assert request.startswith("Import the file.")
    assert request.endswith("Never drop a row.")
    assert REQUEST_CHARS - 40 < len(request) <= REQUEST_CHARS + len(" […] ")


def test_facts_are_the_same_in_every_provider_format():
    raws = [
        {"role": "system", "content": "Never sleep."},
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": "We decided to keep the old table because it is small."},
    ]

    assert facts_of(read(raws, "openai"), range(3)) == facts_of(read(raws, "plain"), range(3))


def test_merging_loses_nothing_and_repeats_nothing():
    older = Facts(
        goals=("Build it.",), requests=("Add a page.", "Go on with b."), constraints=("Never use floats for money.",),
        decisions=("We chose SQLite.",), open_calls=("Bash: make",), files=(FileFact("a", "changed", 1),),
        errors=(ErrorFact("$ make\nno rule", open=True),), names=("a_b", "c_d"), lookups=("one",),
    )  # fmt: skip
    newer = Facts(
        goals=("Actually, ship c_d.",), requests=("Add a page.", "Build it."), constraints=("Never use floats for money.",),
        decisions=("We decided on tabs.",), files=(FileFact("a", "changed", 2),),
        errors=(ErrorFact("$ make\nno rule", open=False),), names=("e_f", "a_b"), lookups=("two",),
    )  # fmt: skip

    assert merged_facts(older, newer) == Facts(
        goals=("Build it.", "Actually, ship c_d."),
        requests=("Go on with b.", "Add a page."),
        constraints=("Never use floats for money.",),
        decisions=("We chose SQLite.", "We decided on tabs."),
        open_calls=("Bash: make",),
        files=(FileFact("a", "changed", 3),),
        errors=(ErrorFact("$ make\nno rule", open=False),),
        names=("e_f", "a_b"),
        lookups=("one", "two"),
    )


def test_the_current_request_of_an_older_stretch_is_one_of_the_requests():
    older, newer = Facts(current=("Port the parser.", "go on")), Facts(current=("Now the writer.",))

    assert merged_facts(older, newer).requests == ("Port the parser.", "go on")
    assert merged_facts(older, Facts()).current == older.current


def count(text):
    return -(-len(text) // 4)


def nowhere(at):
    return ""


def where(at):
    return f"line {at}"


def test_several_summaries_become_one_in_order():
    messages = [
        summary_message(Summary(2, Facts(goals=("First.",), constraints=("Never a.",)), "One."), "openai"),
        new_message("user", "Go on.", "openai"),
        summary_message(Summary(5, Facts(goals=("Second.",)), "Two."), "openai"),
    ]

    found = previous_summary(messages, [0, 2])

    assert (found.version, found.prose) == (5, "One.\nTwo.")
    assert found.facts.goals == ("First.", "Second.")
    assert found.facts.constraints == ("Never a.",)


def test_earlier_facts_and_new_ones_are_merged_with_a_pointer_to_the_full_text():
    messages = conversation(user("Ship it."), user("Never push to main."), model("Fine."))
    before = PreviousSummary(
        1, Facts(constraints=("Always test the parser.",), lookups=("2 messages in full: line 9",)), ""
    )

    found = facts_of_removed(conversation_of(messages), [1, 2], before, where)

    assert found.constraints == ("Always test the parser.",)
    assert found.current == ("Ship it.", "Never push to main.")
    assert found.lookups == ("4 messages in full: line 1 to 9",)


def test_the_pointer_is_given_once_and_only_if_it_is_known():
    messages = conversation(user("Ship it."), model("Fine."))
    before = PreviousSummary(1, Facts(lookups=("1 messages in full: line 1",)), "")

    assert facts_of_removed(conversation_of(messages), [1], before, where).lookups == (
        "1 messages in full: line 1",
    )
    assert (
        facts_of_removed(conversation_of(messages), [1], PreviousSummary(0, Facts(), ""), nowhere).lookups
        == ()
    )
    assert (
        facts_of_removed(conversation_of(messages), [], PreviousSummary(0, Facts(), ""), where).lookups == ()
    )


def test_texts_calls_and_results_are_given_to_a_summariser_without_reasoning():
    messages = conversation(user("Go."), bash("make", "built"), model("Done."))
    messages[3].raw["content"] = "Done."

    found = removed_texts(messages, [1, 2, 3])

    assert found == (
        RemovedText(1, "assistant", "Bash", '{"command": "make"}'),
        RemovedText(2, "tool", "Bash", "built"),
        RemovedText(3, "assistant", "", "Done."),
    )


def test_the_pointer_stays_one_line_over_many_compactions():
    before = PreviousSummary(
        2,
        Facts(
            lookups=(
                "see notes.txt",
                "13 messages in full: line 55 to 67",
                "8 messages in full: line 2 to 29",
            )
        ),
        "",
    )
    messages = conversation(*(user(f"Please do part {at} of it.") for at in range(4)))

    assert facts_of_removed(conversation_of(messages), [1, 3], before, where).lookups == (
        "see notes.txt",
        "23 messages in full: line 1 to 67",
    )
    assert (
        facts_of_removed(conversation_of(messages), [1, 3], before, lambda at: f"line{at}").lookups[-1]
        == "2 messages in full: line1 to line3"
    )


RICH = Facts(
    goals=("Build the ledger service.",),
    requests=tuple(f"Please look at part {n} for ticket T-{n}0001." for n in range(8)),
    constraints=("Never touch the migrations.",),
    decisions=tuple(f"We decided on variant {n} because it is short." for n in range(14)),
    open_calls=("Bash: make test",),
    files=(
        FileFact("read.py", "read", 1, "aaaaaaaaaaaa"),
        FileFact("made.py", "created", 2, "bbbbbbbbbbbb"),
        FileFact("done.py", "changed", 1),
    ),
    errors=(ErrorFact("$ make\nno rule", open=False), ErrorFact("$ tox\nfailed", open=True)),
    names=tuple(f"name_{n}" for n in range(50)),
    lookups=("1 message in full: a", "2 messages in full: b"),
)


def chars(text):
    return len(text)


def size(facts):
    return len(rendered(Summary(1, facts, "")))


def test_facts_that_fit_are_unchanged():
    assert fit_facts(RICH, sizes=Sizes(chars), most=size(RICH)) == (RICH, [])


@rows("most", range(300, size(RICH), 97))
def test_the_result_fits_and_what_it_lacks_is_named(most):
    kept, lost = fit_facts(RICH, sizes=Sizes(chars), most=most)

    assert size(kept) <= most or kept == Facts(
        goals=RICH.goals, constraints=RICH.constraints, lookups=RICH.lookups[-1:]
    )
    assert kept.goals == RICH.goals
    assert kept.constraints == RICH.constraints
    assert lost


def test_in_a_small_summary_the_words_of_a_person_outlast_the_older_paragraphs_of_the_state():
    some = Facts(
        requests=tuple(f"Rename the option {name}." for name in "abcdefgh"),
        state=tuple(f"Paragraph {n} says what was found and done." for n in range(24)),
    )

    kept, _ = fit_facts(some, sizes=Sizes(chars), most=size(some) * 5 // 8)

    assert kept == some._replace(state=some.state[-len(kept.state) :])
    assert 8 <= len(kept.state) < 24


def test_goals_and_constraints_that_alone_are_too_long_are_cut_at_the_end():
    long = Facts(goals=("g" * 3_000,), constraints=("Never x.", "c" * 2_000))

    kept, lost = fit_facts(long, sizes=Sizes(chars), most=1_500)

    assert size(kept) <= 1_500
    assert kept.goals[0].startswith("g" * 300)
    assert kept.goals[0].endswith(CUT)
    assert kept.constraints[0] == "Never x."
    assert lost == ["the ends of goals and constraints"]


def names(*parts, besides=""):
    messages = conversation(*parts)
    return names_of(conversation_of(messages).readings, range(len(messages)), besides=names_in(besides))


def _word(n):
    """Return another word for each number, so that names with it are no series."""
    return f"item{chr(97 + n % 26)}{chr(97 + n // 26)}"


def test_what_people_and_models_name_is_kept_verbatim():
    found = names(
        user("Ticket PROJ-4821, limit 35027 ms, see https://x.org/a?b=1"), model("fetch_user is in src/a.py.")
    )

    assert set(found) == {"PROJ-4821", "35027", "https://x.org/a?b=1", "fetch_user", "src/a.py"}


def test_of_what_tools_say_only_what_cannot_be_a_word_counts():
    found = names(bash("make deploy", "[main 9f3c2ab11d04] fix_it\n  12 lines\nrun-4711 on port 48213"))

    assert set(found) == {"9f3c2ab11d04", "run-4711", "48213"}


@rows(
    "text",
    [
        "I counted 3 of 12.",
        "Use -x and --verbose.",
        "Well, good and done.",
        "2b then, or #1 with 2xx",
        "a list of 111, 404/405",
    ],
)
def test_small_counts_options_and_plain_words_are_no_names(text):
    assert names_in(text) == ()


def test_the_name_used_last_is_at_the_end():
    assert names(user("a_b and c_d"), model("e_f"), user("a_b again")) == ("c_d", "e_f", "a_b")


def test_a_name_in_other_facts_is_not_listed_again():
    assert names(user("a_b and c_d"), besides="we use a_b") == ("c_d",)


def test_the_end_of_a_listed_path_is_no_name():
    found = facts(user(OPENING), tool("Edit", "ok", file_path="/srv/app/io/read_all.py", old_string="a", new_string="b"),
                  model("Changed io/read_all.py and read_all.py, not read_one.py."))  # fmt: skip

    assert "read_one.py" in found.names
    assert not {"io/read_all.py", "read_all.py"} & {*found.names}
    assert merged_facts(Facts(names=("read_all.py", "W-1")), found).names[:1] == ("W-1",)


def test_the_person_counts_more_than_many_ids_of_a_listing():
    listing = "\n".join(f"{_word(n)}-{n:05}" for n in range(400))

    found = names(user("It is about order W-77123."), tool("list", listing))

    assert len(found) == MOST_NAMES
    assert "W-77123" in found


def test_injected_blocks_and_system_messages_name_nothing():
    assert (
        names(
            user("<aether-memory>secret_name</aether-memory> <system-reminder>other_name</system-reminder>")
        )
        == ()
    )


def test_of_very_many_answers_of_tools_the_newest_are_read():
    found = names(user("It is about W-77123."), *(tool("t", f"{_word(at)}-{at:05}") for at in range(400)))

    assert "W-77123" in found
    assert f"{_word(100)}-00100" in found
    assert not any(name.endswith("-00099") for name in found)


def test_of_what_is_numbered_through_a_few_are_named():
    code = "\n".join(f"def handler_24_{n}(conn): ..." for n in range(40))

    assert names(tool("Read", code)) == ("handler_24_37", "handler_24_38", "handler_24_39")
    assert len(names(user("T-10001, T-10002, T-10003 and T-10004"))) == 4


def test_the_times_and_sizes_of_a_listing_are_no_names():
    listing = "total 53248\n-rw-r--r-- 1 me us 53248 Jan  5 15:43 hello_2345\ndrwxr-xr-x 2 me us 40961 Jan  5 11:44 run-4711"

    assert names(bash("ls -l", listing)) == ("hello_2345", "run-4711")


def test_what_a_host_says_above_an_output_and_the_limits_of_a_call_are_no_names():
    frame = "Chunk ID: 8fec96\nWall time: 1.0015 seconds\nProcess running with session ID 41205\nOutput:\n"
    made = tool("exec", f"{frame}order-48213", cmd="make", timeout=120000, order=48214)

    assert set(names(made)) == {"order-48213", "48214"}


@rows("text", ["It began at 15:43.", "See 569-624 there.", "It takes ~350 of them."])
def test_clocks_ranges_and_guesses_are_no_names(text):
    assert names_in(text) == ()


@rows(
    ("text", "names"),
    [
        ("It ran at 2026-01-23T19:04:05Z on ubuntu-24.04.", []),
        ("The key is a%2F20260126%2Fus-east.", []),
        ("Compare run-4711: it ended. See q21330.", ["run-4711", "q21330"]),
        ("git show f2febcb:src/a.py", ["f2febcb"]),
    ],
)
def test_a_name_is_never_the_torn_part_of_a_longer_token(text, names):
    assert [name for name in names_in(text) if " " not in name] == names


@rows(("name", "one"), [
    ("paragraphs of the state", "1 paragraph of the state"), ("parts of requests", "1 part of a request"),
    ("parts of older paragraphs", "1 part of an older paragraph"), ("earlier results", "1 earlier result"),
])  # fmt: skip
def test_one_dropped_fact_is_named_in_the_singular(name, one):
    assert pluralize(1, name) == one


@rows("wire", PROVIDER_FORMATS)
def test_the_tokens_of_a_summary_by_its_lines_are_those_of_its_message(wire):
    for count in (estimate, counter("estimate", 1.13), chars):
        fitted = fit_summary(RICH, 12, wire, sizes=Sizes(count), most=100_000)

        assert fitted.tokens == message_tokens(summary_message(Summary(12, RICH, ""), wire), count)
