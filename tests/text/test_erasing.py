"""Every way in which a text may stand written, and the mark in its place."""

from __future__ import annotations

import json
from urllib.parse import quote

from aether.text.erasing import is_mark, marks, may_hold, replaced, sought, spans, whole
from tests.tables import rows

SECRET = 'Pä"s/s wörd\\x'


def erased(text, *wanted):
    found = sought(wanted)
    spellings = [text[start:end] for start, end in spans(text, found)]
    assert may_hold(text, found) or not spellings
    return replaced(text, found, marks(spellings, found, taken=text))


@rows(
    "written",
    [
        SECRET,
        SECRET.upper(),
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(json.dumps(SECRET)),
        json.dumps(json.dumps(json.dumps(SECRET))),
        repr(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        json.dumps(SECRET).replace("/", "\\/"),
        SECRET.replace(" ", "\n\t "),
        SECRET.replace(" ", "\\n"),
        "Pa\u0308" + SECRET[2:].replace("ö", "o\u0308"),
        SECRET.replace('"', "&quot;"),
    ],
)
def test_it_is_found_however_it_is_written(written):
    assert "ERASED" in erased(f"before {written} after", SECRET)
    assert whole(erased(f"before {written} after", SECRET), sought([SECRET])) == []


@rows(
    ("text", "left"),
    [
        ("the key is Quorvex-Bl…", "the key is [ERASED]…"),
        ("the key is Quorvex-Bl ... and so on", "the key is [ERASED] ... and so on"),
        ("the key is Quorvex-B", "the key is [ERASED]"),
        ("… vex-Blue is it", "… [ERASED] is it"),
        ("rvex-Blue is it", "[ERASED] is it"),
        ("Quorvex-Bl […] rvex-Blue", "[ERASED] […] [ERASED-2]"),
        ("Quorvex", "Quorvex"),
        ("Quorvex-Black is another", "Quorvex-Black is another"),
        ("a-Blue one", "a-Blue one"),
        ("a navex-Blue one", "a navex-Blue one"),
        ("Quorvex-Blue", "[ERASED]"),
    ],
)
def test_what_was_cut_off_is_found_where_it_was_cut(text, left):
    assert erased(text, "Quorvex-Blue") == left


def test_several_texts_the_longest_first():
    assert erased("abcdef ghi, abcdef", "abcdef", "abcdef ghi") == "[ERASED], [ERASED-2]"


def test_a_mark_is_new_and_does_not_join_to_the_text_again():
    assert erased("abcde[abcde[ and [ERASED]", "abcde[") == "<ERASED><ERASED> and [ERASED]"
    assert marks(["x"], sought(["[<{ERA"]), taken="") == {"x": "«ERASED»"}
    assert marks(["x"], sought(["[<{«RA"]), taken="") == {"x": "«ERASED»"}
    assert erased("[ERASED] abcdef", "abcdef") == "[ERASED] [ERASED-2]"
    assert (is_mark("[ERASED]"), is_mark("ERASED")) == (True, False)


def test_of_a_short_text_no_part_is_taken_for_it():
    assert erased("abcde… bcdef", "abcdef") == "abcde… bcdef"
