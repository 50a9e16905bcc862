from aether.text.words import sentences


def test_prose_ends_at_marks_and_not_at_abbreviations():
    assert sentences("See e.g. Dr. Lee, i.e. section 3.2! Is it v1.4? Yes.") == [
        "See e.g. Dr. Lee, i.e. section 3.2!", "Is it v1.4?", "Yes.",
    ]  # fmt: skip


def test_quotes_and_brackets_stay_with_the_sentence_they_close():
    assert sentences('He said "stop." (Then he left.) We went on.') == [
        'He said "stop."', "(Then he left.)", "We went on.",
    ]  # fmt: skip


def test_what_breaks_off_may_go_on():
    assert sentences("It took … about an hour. And then...") == ["It took … about an hour.", "And then..."]


def test_a_wrapped_line_goes_on_and_a_short_one_does_not():
    wrapped = "This line is as long as an editor lets it be before it wraps\nand goes on here"

    assert sentences(wrapped) == [wrapped.replace("\n", " ")]
    assert sentences("a heading\nand a line") == ["a heading", "and a line"]


def test_list_entries_and_paragraphs_are_sentences_of_their_own():
    text = (
        "We have the following list of things that must be looked at\n- the first one\n* the second\n\nDone"
    )

    assert sentences(text) == [
        "We have the following list of things that must be looked at", "- the first one", "* the second", "Done",
    ]  # fmt: skip


def test_code_is_cut_by_lines_only():
    assert sentences("Look.\n```py\nx = a. b\n\ny = c! d\n```\nGood. Bye.") == [
        "Look.", "x = a. b", "y = c! d", "Good.", "Bye.",
    ]  # fmt: skip


def test_scripts_without_blanks_end_at_their_own_marks():
    assert sentences("これは一。これは二！三") == ["これは一。", "これは二！", "三"]


def test_blanks_hold_no_sentence():
    assert sentences(" \n\t\n") == []


def test_a_command_in_ticks_is_not_cut():
    text = "Ran `go test ./... -run X. Y` twice."

    assert sentences(text + " It passed.") == [text, "It passed."]
    assert sentences("An odd ` tick. It ends.") == ["An odd ` tick.", "It ends."]


def test_a_number_behind_a_word_ends_a_sentence_and_one_that_counts_does_not():
    assert sentences("Looking at step 0. I decided to use it.") == [
        "Looking at step 0.",
        "I decided to use it.",
    ]
    assert sentences("1. We do it. See fig. 3. We like it on 3. May.") == [
        "1. We do it.",
        "See fig. 3. We like it on 3. May.",
    ]
