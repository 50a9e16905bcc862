"""Erasing maps strings: every past state is the old one with its strings mapped, and what did not hold the text is undone as before."""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random

import zstandard
from hypothesis import example, given, reject
from hypothesis import strategies as st

import aether
from aether.api import forget
from aether.errors import Conflict, InvalidInput, NotFound
from aether.memory.erase import map_strings, marks, replaced, rewrite_file, spans, wanted
from aether.store import journal as journals
from aether.store import log, patch
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.journal import folded_entries
from aether.store.undo import states_since, undo
from tests import homes
from tests.effort import examples
from tests.laws.json_values import values

TEXT = "Quorvex"
MARK = "[ERASED]"
# What is said, with the text in it or not, in one piece, twice, or beside what looks like a mark.
SAID = st.sampled_from([TEXT, f"a {TEXT} b", f"{TEXT}{TEXT}", "nothing", "ERASED", f"/{TEXT}/~1", "Quor"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), SAID),
        st.tuples(st.just("say"), SAID),
        st.tuples(st.just("note"), SAID),
        st.tuples(st.sampled_from(["remove", "fold", "undo"]), st.just("")),
    ),
    max_size=12,
)


def act(home, number, step, said):
    """Do one step of a history; what makes no sense at this point is passed over."""
    held = homes.ids(home)
    if step == "add":
        homes.add(home, f"item{number}", said)
    elif step == "remove" and held:
        homes.remove(home, held[0])
    elif step == "say" and held:
        homes.patch(home, {"op": "replace", "path": "/working_memory/items/0/content", "value": said})
    elif step == "note":
        path = patch.pointer("files", f"/memories/{said.strip('/')}-{number}")
        homes.patch(home, {"op": "add", "path": path, "value": said}, document="memories")
    elif step == "fold":
        fold_home(home, now=homes.NOW)
    elif step == "undo":
        take_back(home, homes.reopened(home).revision)


def take_back(home, revision):
    """Undo `revision`, and return what came of it."""
    try:
        return commit(
            home,
            lambda found: undo(found, revision),
            Author("undo", reason=f"of revision {revision}"),
            now=homes.NOW,
        )
    except (Conflict, NotFound) as reason:
        return type(reason)


def past(home):
    """Return the state at every revision, newest first, and what the log says of it."""
    snapshot = homes.reopened(home)
    steps, first = states_since(snapshot, 1)
    return [*((entry.revision, entry.operation, entry.at, state) for entry, state in steps), first]


@given(STEPS, st.integers(1, 12))
@examples(60)
def test_every_past_state_is_mapped_and_only_what_held_the_text_cannot_be_undone(steps, revision):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home, other = (homes.fresh(Path(directory, name)) for name in ("one", "two"))
        for number, (step, said) in enumerate(steps):
            act(home, number, step, said)
            act(other, number, step, said)
        fold_home(other, now=homes.NOW)
        before = past(other)
        held = [entry.revision for entry in folded_entries(other) if TEXT in str(entry)]

        forget.erase(match=TEXT, home=home)

        wanted = json.loads(json.dumps(before).replace(TEXT, MARK))
        assert json.loads(json.dumps(past(home))) == wanted
        assert [entry.revision for entry in folded_entries(home) if entry.erased] == held
        done = take_back(home, revision)
        if revision in held:
            assert done is Conflict
        else:
            assert type(done) is type(take_back(other, revision))
        assert homes.reopened(home).documents == json.loads(
            json.dumps(homes.reopened(other).documents).replace(TEXT, MARK)
        )


def spelled(text, rng):
    """Return `text` as some writer of JSON writes it between the quotes: any character may be escaped, in any way."""
    short = {
        '"': '\\"',
        "\\": "\\\\",
        "/": "\\/",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
    }
    pieces = []
    for char in text:
        units = char.encode("utf-16-be")
        digits = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
        ways = ["".join(f"\\u{rng.choice([four, four.upper()])}" for four in digits)]
        ways += [short[char]] if char in short else []
        ways += [char] * 3 if char >= " " and char not in '"\\' else []
        pieces.append(rng.choice(ways))
    return "".join(pieces)


def strings_in(data):
    """Yield every decoded string in the bytes of a file: of its lines, of the values in them, and of JSON in these."""
    if data.startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b")):
        is_gzip = data.startswith(b"\x1f")
        data = (
            gzip.decompress(data)
            if is_gzip
            else zstandard.ZstdDecompressor().decompressobj().decompress(data)
        )
    left: list = [data.decode("utf-8", "replace")]
    left += left[0].splitlines()
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
            with suppress(ValueError):
                left += [inner for inner in [json.loads(value)] if inner != value]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            left += [*value, *value.values()]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=12).map(str.strip)
    | st.sampled_from(["cafés/nöch", 'a\\"b\\n/c', "nfoobar", "u00e9u00e9", "\N{GRINNING FACE}\n- emoji"]),
    st.integers(1, 3),
    st.sampled_from([bytes, gzip.compress]),
    st.randoms(use_true_random=False),
)
@example("nfoobar", 1, bytes, Random(1))
def test_no_string_of_a_transcript_holds_an_erased_text_however_its_writer_spelled_it(text, depth, pack, rng):
    said, talk = f"it is\n{text}", None
    for _ in range(depth):
        talk = f'{{"id": "talk", "messages": [{{"role": "user", "content": "{spelled(said, rng)}"}}]}}'
        said = talk
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home, file = homes.fresh(Path(directory)), Path(directory, "talk.json")
        file.write_bytes(pack(talk.encode()))
        aether.archive_files([file], home=home)
        try:
            done = forget.erase(match=text, home=home)
        except InvalidInput:  # a part of the formats, or too short
            reject()

        assert done.done
        for path in home.rglob("*"):
            for held in strings_in(path.read_bytes()) if path.is_file() else ():
                assert text not in held, path
        back = Path(directory, "back.json")
        assert aether.restore_conversation("talk", output=back, home=home).exact
        assert json.loads(next(strings_in(back.read_bytes()))).keys() == {"id", "messages"}


@given(values(), values())
def test_a_change_of_mapped_states_is_the_mapped_change(before, after):
    def erase(text):
        return text.replace("a", "[ERASED]")

    line = journals.entry_line(
        journals.Entry(1, "", "", "edit", "", {"x": patch.diff(before, after)}, {}, {})
    )
    change = journals.entry_of(log.unsealed(rewrite_file("a.jsonl", line, erase))).patches.get("x", [])

    assert patch.apply(map_strings(before, erase), change) == map_strings(after, erase)


@given(
    st.lists(
        st.sampled_from(
            ["abcdéf", "abcde\u0301f", "abcd", r"\u00E9f", "\\", "\\n", "f", "x ", "[ERASED]", "[", "]"]
        ),
        max_size=8,
    ).map("".join)
)
def test_nothing_is_left_and_what_differed_differs(text):
    sought = wanted(["abcdéf"])
    by = marks((text[start:end] for start, end in spans(sought, text)), taken=["[ERASED]"])

    made = replaced(sought, text, by.__getitem__)

    assert not spans(sought, made)
    back = made
    for spelling, mark in by.items():
        back = back.replace(mark, spelling)
    assert back == text
