"""Words, terms, sentences and plurals."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from aether.text import words as module
from aether.text.words import (
    BASE_FORMS,
    MAX_TERM_CHARS,
    PART_WEIGHT,
    STOPWORDS,
    has_terms_beside,
    matching_part,
    parts,
    pluralize,
    query_terms,
    runs,
    sentences,
    stem,
    stems,
    term,
    terms,
    words,
)
from tests.tables import rows


def test_words_are_case_folded_and_in_order():
    assert list(words("Retry the Upload, then STOP")) == ["retry", "the", "upload", "then", "stop"]


@rows(
    ("text", "expected"),
    [
        ("日本語", ["日本", "本語"]),
        ("猫", ["猫"]),
        ("ไทย", ["ไท", "ทย"]),
        ("Straße ＡＢＣ", ["strasse", "abc"]),
        ("don’t can't", ["don't", "can't"]),
        ("", []),
        ("--- !!! \x00", []),
        ("\ud800", []),
    ],
)
def test_every_script_has_words(text, expected):
    assert list(words(text)) == expected


@given(st.text(alphabet=st.characters(max_codepoint=0x7F)) | st.text(alphabet="ab'9 _B"))
def test_ascii_is_cut_as_any_text_is(text):
    assert runs(text) == module._RUN.findall(text)


def test_snake_case_is_split_and_camel_case_has_parts():
    assert list(words("fetch_user_name")) == ["fetch", "user", "name"]
    assert parts("fetchUserName") == ["fetch", "user", "name"]
    assert parts("HTTPServer") == ["http", "server"]
    assert parts("plain") == []


def test_stems_bring_forms_of_a_word_together():
    assert stem("failed") == stem("failing") == stem("fails")


@rows("word", ["404", "naïve", "日本", "a", "x86"])
def test_words_of_other_languages_and_numbers_are_not_stemmed(word):
    assert stem(word) == word


def test_stopwords_have_no_stems():
    assert list(stems("it is not the cache")) == ["not", "cach"]


def test_negations_and_modals_are_no_stopwords():
    assert STOPWORDS.isdisjoint({"not", "never", "no", "must", "should", "without", "only", "always"})


def test_threads_do_not_mix_their_words():
    """The library's stemmer keeps the word it is at work on."""
    made = [f"{one}{two}{end}" for one in ("conn", "relat", "gener", "oper") for two in "aeioulrst" for end in
            ("ational", "fulness", "ingly", "ization", "ements", "ed")]  # fmt: skip
    alone = [stem.__wrapped__(word) for word in made]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: [stem.__wrapped__(word) for word in made], range(8)))
    finally:
        sys.setswitchinterval(before)

    assert found == [alone] * 8


@rows(
    ("one", "other"),
    [
        ("bought", "buys"),
        ("Caroline's".casefold(), "caroline"),
        ("children", "child"),
        ("decided", "decision"),
    ],
)
def test_forms_of_one_word_give_one_term(one, other):
    assert term(one) == term(other)


def test_every_irregular_form_leads_to_a_base_that_leads_no_further():
    assert BASE_FORMS["bought"] == "buy"
    assert not set(BASE_FORMS.values()) & set(BASE_FORMS)


def test_stopwords_keep_their_place_but_add_no_length():
    found = terms("the state of the art")

    assert found.words == ("the", "state", "of", "the", "art")
    assert found.length == 2


def test_compound_names_are_found_by_their_parts():
    assert terms("getUserName fetch_user").words == ("getusernam", "fetch", "user")
    assert terms("getUserName").parts == ("get", "user", "name")
    assert query_terms("getUserName").weights["user"] == PART_WEIGHT


@rows("name", ["PostgreSQL", "MySQL", "NoSQL"])
def test_a_proper_name_is_not_found_by_its_last_letters(name):
    assert terms(name).parts == ()


def test_other_names_that_end_in_capitals_are_compound():
    assert terms("parseJSON HTTPServer getUserID").parts == (
        "pars",
        "json",
        "http",
        "server",
        "get",
        "user",
        "id",
    )


def test_single_characters_of_scripts_without_spaces_are_terms_of_a_text_only():
    assert terms("東京都").words == ("東京", "京都")
    assert terms("東京都").parts == ("東", "京", "都")
    assert query_terms("東京都").weights == {"東京": 1.0, "京都": 1.0}
    assert query_terms("都").weights == {"都": 1.0}


def test_a_query_of_stopwords_only_asks_for_the_stopwords():
    assert query_terms("to be or not").weights == {"not": 1.0}
    assert set(query_terms("to be or").weights) == {"to", "be", "or"}


def test_a_query_remembers_how_its_words_were_written():
    assert query_terms("Retries FAILED").spelled == {"retri": "Retries", "fail": "FAILED"}
    assert query_terms("日本語").spelled == {"日本": "日本", "本語": "本語"}


def test_long_runs_are_cut():
    assert terms("x9" * 5000).words == ("x9" * (MAX_TERM_CHARS // 2),)


def test_text_without_words_has_no_terms():
    assert terms("!? …") == ((), (), 0)
    assert query_terms("!?") == ({}, {}, ())


def test_every_form_leads_to_a_base_that_is_no_form_itself():
    assert len(BASE_FORMS) > 100
    assert set(BASE_FORMS.values()).isdisjoint(BASE_FORMS)


def test_forms_that_no_stemmer_brings_together_are_one_term():
    assert stem("wrote") != stem("written")
    assert terms("wrote").words == terms("written").words == terms("write").words


def test_prose_ends_at_marks_and_not_at_abbreviations():
    assert sentences("See e.g. Dr. Lee, i.e. section 3.2! Is it v1.4? Yes.") == [
        "See e.g. Dr. Lee, i.e. section 3.2!", "Is it v1.4?", "Yes.",
    ]  # fmt: skip


def test_quotes_and_brackets_stay_with_the_sentence_they_close():
    assert sentences('He said "stop." (Then he left.) We went on.') == [
        'He said "stop."', "(Then he left.)", "We went on.",
    ]  # fmt: skip


def test_a_sentence_may_continue_after_an_ellipsis():
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


def test_a_number_that_counts_does_not_end_a_sentence():
    assert sentences("1. We do it. See fig. 3. We like it on 3. May.") == [
        "1. We do it.",
        "See fig. 3. We like it on 3. May.",
    ]


@rows(
    ("number", "what", "said"),
    [
        (0, "sessions", "0 sessions"), (1, "sessions", "1 session"), (2, "sessions", "2 sessions"),
        (1, "entries", "1 entry"), (1, "notes of Claude Code", "1 note of Claude Code"),
    ],
)  # fmt: skip
def test_one_thing_is_named_in_the_singular(number, what, said):
    assert pluralize(number, what) == said


def test_a_mark_that_separates_words_does_so_among_all_letters():
    for mark in ("–", "—", "“", "”", "•", "→", "✓", "≥"):
        for before, after in (("cache", "port 7"), ("Größe", "日本語"), ("don’t", "e.g")):
            parted = runs(f"{before}{mark}{after}")

            assert parted == runs(f"{before} {after}"), (mark, before)


def test_a_sentence_goes_on_behind_code_that_ends_in_a_mark():
    text = "The `src/{route,page}.tsx?` boundaries are symbols. It says `done.` Then it ends."

    assert sentences(text) == [
        "The `src/{route,page}.tsx?` boundaries are symbols.",
        "It says `done.`",
        "Then it ends.",
    ]


@given(
    st.lists(st.sampled_from(["the", "fetchUser", "fails", "Fails", "日本語", "it's", "PostgreSQL", "7", "ran", "run", "of"])),
    st.frozensets(st.sampled_from(["fetchus", "fetch", "fail", "日本", "run", "the", "7"])),
    st.integers(0, 5),
)  # fmt: skip
def test_new_terms_are_found_without_cutting_all_of_a_text(said, known, least):
    text = " ".join(said)

    assert has_terms_beside(text, known, least=least) == (
        len(query_terms(text).weights.keys() - known) >= least
    )


def test_no_more_of_a_text_is_cut_than_needed(monkeypatch):
    cut = []
    real = module._piece
    monkeypatch.setattr(module, "_piece", lambda run: (cut.append(run), real(run))[1])

    assert has_terms_beside("one two three four five", {"one"}, least=2)
    assert cut == ["one", "two", "three"]


@rows(
    ("words", "most", "part"),
    [
        (
            ["rows"],
            90,
            "We met. The ledger is locked once for each row, because its reader must see it whole.",
        ),
        (["rows"], 60, "The ledger is locked once for each row, because its reader…"),
        (["whole"], 50, "The ledger is … its reader must see it whole."),
        ([], 30, "We met. The ledger is locked…"),
        (["whole"], 12, "The … whole…"),
    ],
)
def test_a_part_starts_where_its_sentence_does(words, most, part):
    text = "We met. The ledger is locked once for each row, because its reader must see it whole."

    assert matching_part(text, words, most) == part


def test_a_part_of_a_text_without_blanks_is_cut_anywhere():
    text = "天気は良い。" * 9 + "東京都の天気は良い。" * 9

    assert matching_part(text, ["東京"], 12) == "東京都の天気は良い。…"


@given(
    st.lists(st.sampled_from("lock the ledger; row. export, 猫の本 see".split()), min_size=1, max_size=60),
    st.integers(12, 90),
)
def test_a_part_is_short_and_all_of_it_is_in_the_text_in_order(said, most):
    text = " ".join(said)
    part = matching_part(text, ["ledger", "export"], most)

    assert len(part) <= most
    end = 0
    for piece in part.split("…"):
        end = text.index(piece.strip(), end) + len(piece.strip())
