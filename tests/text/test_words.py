from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from aether.text import words as module
from aether.text.words import STOPWORDS, parts, runs, stem, stems, words
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
def test_what_is_no_english_word_stays_as_it_is(word):
    assert stem(word) == word


def test_stopwords_go_unless_asked_for():
    assert list(stems("it is not the cache")) == ["not", "cach"]
    assert list(stems("it is", stop=False)) == ["it", "is"]


def test_what_turns_a_meaning_round_is_no_stopword():
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
