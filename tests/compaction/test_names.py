from aether.compaction.facts import MOST_MERGED_NAMES, MOST_NAMES, merged_names, names_in, names_of
from tests.compaction.conversations import bash, conversation, model, tool, user
from tests.tables import rows


def names(*parts, besides=""):
    messages = conversation(*parts)
    return names_of(messages, range(len(messages)), besides=besides)


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


@rows("text", ["I counted 3 of 12.", "Use -x and --verbose.", "Well, good and done."])
def test_small_counts_options_and_plain_words_are_no_names(text):
    assert names_in(text) == []


def test_what_was_used_last_stands_at_the_end():
    assert names(user("a_b and c_d"), model("e_f"), user("a_b again")) == ("c_d", "e_f", "a_b")


def test_what_stands_elsewhere_is_not_named_twice():
    assert names(user("a_b and c_d"), besides="we use a_b") == ("c_d",)


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


def test_of_a_long_text_both_ends_are_read():
    found = names(
        user("first_name " + "word " * 9_000 + " last_name"),
        tool("t", "id-11111 " + "word " * 9_000 + "id-22222"),
    )

    assert set(found) == {"first_name", "last_name", "id-11111", "id-22222"}


def test_names_that_are_data_are_left_out():
    assert names_in("x" * 60 + "_" + "y" * 80) == []


def test_merging_bounds_what_is_carried_and_drops_the_oldest():
    older = [f"old-{n}" for n in range(MOST_MERGED_NAMES)]

    found = merged_names(older, ["new-1", "old-5", "new-1"])

    assert len(found) == MOST_MERGED_NAMES
    assert found[-2:] == ("new-1", "old-5")
    assert "old-0" not in found


def test_of_very_many_answers_of_tools_the_newest_are_read():
    found = names(user("It is about W-77123."), *(tool("t", f"{_word(at)}-{at:05}") for at in range(400)))

    assert "W-77123" in found
    assert f"{_word(100)}-00100" in found
    assert not any(name.endswith("-00099") for name in found)


def test_of_what_is_numbered_through_a_few_are_named():
    code = "\n".join(f"def handler_24_{n}(conn): ..." for n in range(40))

    assert names(tool("Read", code)) == ("handler_24_37", "handler_24_38", "handler_24_39")
    assert len(names(user("T-10001, T-10002, T-10003 and T-10004"))) == 4


def test_merging_keeps_a_few_of_what_is_numbered_through():
    older = [f"line_{n}" for n in range(9)]

    assert merged_names(older, ["line_9", "T-1"]) == ("line_7", "line_8", "line_9", "T-1")


def test_the_times_and_sizes_of_a_listing_are_no_names():
    listing = "total 53248\n-rw-r--r-- 1 me us 53248 Jan  5 15:43 hello_2345\ndrwxr-xr-x 2 me us 40961 Jan  5 11:44 run-4711"

    assert names(bash("ls -l", listing)) == ("hello_2345", "run-4711")


@rows("text", ["It began at 15:43.", "See 569-624 there.", "It takes ~350 of them."])
def test_clocks_ranges_and_guesses_are_no_names(text):
    assert names_in(text) == []
