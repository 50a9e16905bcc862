import os
from itertools import pairwise

import pytest

from aether.store import doctor, documents, files, record_files, seals
from aether.store import journal as journals
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.log import unsealed
from aether.store.patch import json_equal
from aether.store.snapshot import Pending
from aether.types import Change
from tests import homes
from tests.tables import rows


def codes(home):
    return [(one.level, one.code, one.where) for one in doctor.examine(home)]


def test_nothing_is_wrong_with_a_good_home(home):
    homes.add(home, "one")

    assert doctor.examine(home) == []
    assert doctor.repair(home, now=homes.NOW) == []


def test_a_directory_that_is_not_a_home_is_said_to_be_none(tmp_path):
    assert codes(tmp_path) == [("error", "NotFound", str(tmp_path))]


def test_temp_files_of_killed_processes_are_found_and_removed(home):
    stray = home / "data" / f".memory.json.00{files.TEMP_SUFFIX}"
    stray.write_bytes(b"half")

    assert codes(home) == [("warning", "temp-file", f"data/{stray.name}")]
    assert doctor.repair(home, now=homes.NOW) == [f"removed data/{stray.name}, left by a killed process"]
    assert doctor.examine(home) == []


def test_the_next_fold_removes_temp_files_that_are_older_than_an_hour(home):
    old, new = (home / "data" / f".memory.json.{name}{files.TEMP_SUFFIX}" for name in ("old", "new"))
    edited = home / "data" / f".goals.json.0{files.TEMP_SUFFIX}"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    edited.write_text('{"by": "hand"}')
    for path in (old, edited):
        os.utime(path, (1, 1))
    homes.add(home, "one")

    fold_home(home, now=homes.NOW)

    assert (old.exists(), new.exists(), edited.exists()) == (False, True, False)
    assert [path.read_text() for path in (home / "quarantine").iterdir()] == ['{"by": "hand"}']


def test_examining_changes_nothing(home):
    (home / "data" / "memory.json").write_bytes(b"{")
    with journals.journal_path(home).open("ab") as file:
        file.write(b"torn")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    doctor.examine(home)

    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_torn_journal_line_is_a_warning_and_is_kept_aside(home):
    with journals.journal_path(home).open("ab") as file:
        file.write(b'{"torn')

    assert codes(home) == [("warning", "torn-line", "data/journal.jsonl")]
    doctor.repair(home, now=homes.NOW)
    assert [one.code for one in doctor.examine(home)] == ["quarantine"]


def test_copies_from_another_machine_are_named_and_stay(home):
    homes.add(home, "one")
    fold_home(home, now=homes.NOW)
    names = [
        "memory (Ada's conflicted copy 2026-10-02).json", "memory.sync-conflict-20261002-1.json", "memory 2.json",
        "journal-LAPTOP.jsonl", "head (1)",
    ]  # fmt: skip
    for name in [*names, "memory.txt", "memories.json.old", "notes.json"]:
        (home / "data" / name).write_bytes(b"{}")

    copies = [finding for finding in codes(home) if finding[1] == "conflicted-copy"]
    doctor.repair(home, now=homes.NOW)

    assert sorted(copies) == sorted(("warning", "conflicted-copy", f"data/{name}") for name in names)
    assert all((home / "data" / name).exists() for name in names)
    assert homes.ids(home) == ["one"]


def test_a_repeated_revision_is_reported(home):
    homes.add(home, "one")
    line = journals.journal_path(home).read_bytes().splitlines(keepends=True)[-1]
    with journals.journal_path(home).open("ab") as file:
        file.write(line)

    assert codes(home) == [("info", "repeated-revision", "data/journal.jsonl")]
    assert homes.ids(home) == ["one"]


def test_damaged_and_torn_records_are_distinguished(home):
    commit(
        home, lambda _: Change({}, {"items": [{"n": 1}], "receipts": [{"n": 1}]}), Author("x"), now=homes.NOW
    )
    fold_home(home, now=homes.NOW)
    item, receipt = record_files.files_of(home, "items")[0], record_files.files_of(home, "receipts")[0]
    item.write_bytes(item.read_bytes() + b"damaged\n")
    receipt.write_bytes(receipt.read_bytes() + b'{"torn')

    assert codes(home) == [
        ("error", "damaged-line", f"{item.relative_to(home)}:2"),
        ("warning", "torn-line", "data/receipts.jsonl"),
    ]


def test_a_gap_in_the_history_is_reported(home):
    for name in ("one", "two", "three"):
        homes.add(home, name)
    fold_home(home, now=homes.NOW)
    path = journals.month_files(home)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))

    assert codes(home) == [
        ("error", "damaged-file", str(path.relative_to(home))), ("warning", "history-gap", "revision 3"),
    ]  # fmt: skip
    doctor.repair(home, now=homes.NOW)
    assert [(one.code, one.message.partition(";")[0]) for one in doctor.examine(home)] == [
        ("known-loss", "revision 3 of the history: lost")
    ]


@pytest.mark.parametrize(
    ("data", "level", "code"),
    [(b"{", "error", "corrupt"), (None, "error", "missing"), (b"edit", "warning", "edited")],
)
def test_a_file_that_is_not_as_it_was_left_is_reported_and_repaired(home, data, level, code):
    path = documents.path_of(home, "memory")
    if data is None:
        path.unlink()
    elif data == b"edit":
        path.write_bytes(path.read_bytes().replace(b'"LRU"', b'"LRU" ', 1))
    else:
        path.write_bytes(data)

    assert codes(home) == [(level, code, "memory.json")]
    assert doctor.repair(home, now=homes.NOW) == ["wrote memory.json again from what is known"]
    assert not [one for one in doctor.examine(home) if one.level != "info"]


def test_a_state_that_breaks_its_schema_is_reported_with_the_place(home):
    homes.patch(home, {"op": "replace", "path": "/metrics/total_compressions", "value": -1})

    assert codes(home) == [("error", "schema-minimum", "memory#/metrics/total_compressions")]


def test_a_home_whose_journal_was_removed_is_whole(home):
    homes.add(home, "one")
    fold_home(home, now=homes.NOW)
    journals.journal_path(home).unlink()

    assert codes(home) == [("warning", "missing", "data/journal.jsonl")]
    assert homes.ids(home) == ["one"]
    assert doctor.repair(home, now=homes.NOW) == ["made data/journal.jsonl again"]
    assert doctor.examine(home) == []
    assert homes.ids(home) == ["one"]


@pytest.mark.parametrize("harm", ["a byte", "the whole line", "its end"])
def test_a_damaged_first_line_of_the_journal_costs_no_commit(home, harm):
    homes.add(home, "zero")
    fold_home(home, now=homes.NOW)
    for name in ("one", "two", "three"):
        homes.add(home, name)
    path = journals.journal_path(home)
    first, rest = path.read_bytes().split(b"\n", 1)
    harmed = {"a byte": b"X" + first[1:] + b"\n", "the whole line": b"", "its end": first[:-3] + b"\n\n"}
    path.write_bytes(harmed[harm] + rest)

    doctor.repair(home, now=homes.NOW)

    assert homes.ids(home) == ["zero", "one", "two", "three"]
    assert [one.code for one in doctor.examine(home)] == ["quarantine"]


def test_commits_behind_a_damaged_first_line_and_a_lost_commit_are_kept(home):
    for name in ("one", "two", "three"):
        homes.add(home, name)
    path = journals.journal_path(home)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"X" + lines[0][1:] + b"X" + lines[1][1:] + b"".join(lines[2:]))

    doctor.repair(home, now=homes.NOW)

    assert homes.ids(home) == ["two", "three"]
    assert any(lines[3] in path.read_bytes() for path in (home / "quarantine").iterdir())


@pytest.mark.parametrize("settings", ["garbage [", "[store]\nfold_bytez = 3\n"])
def test_a_broken_configuration_is_reported_and_hinders_no_repair(home, settings):
    (home / "config.toml").write_text(settings)
    documents.path_of(home, "memory").write_bytes(b"{")

    assert ("error", "InvalidDocument", "config.toml") in codes(home)
    assert doctor.repair(home, now=homes.NOW) == ["wrote memory.json again from what is known"]
    assert [one for one in codes(home) if one[0] == "error"] == [("error", "InvalidDocument", "config.toml")]


def sealed(home, grown=None, whole=None, losses=None):
    """Write a record of seals with a good checksum, as anybody can make it."""
    value = {"format": 1, "grown": grown or {}, "whole": whole or {}, "losses": losses or []}
    (home / seals.PATH).write_bytes(documents.encode(value, 1, size=0))


LOSS = {"at": "2026-03-01T10:15:00.000000Z", "where": "data/events.jsonl", "what": "lost"}


@rows(
    "given",
    [
        {"whole": {"{victim}": "0"}},
        {"whole": {"../victim": "0"}},
        {"whole": {"snapshots/../../victim.json": "0"}},
        {"whole": {"data/memory.json": "0"}},
        {"whole": {"config.toml": "0"}},
        {"whole": {"snapshots/a.json": 7}},
        {"grown": {"data/journal/../../../victim.jsonl": [1, 1, "0"]}},
        {"grown": {"data/journal/{victim}": [1, 1, "0"]}},
        {"grown": {"{victim}": [1, 1, "0"]}},
        {"grown": {"data/memory.json": [1, 1, "0"]}},
        {"grown": {"data/journal/2026-03.jsonl": [1, 1, 0]}},
        {"grown": {"data/journal/2026-03.jsonl": [-1, 1, "0"]}},
        {"grown": {"data/journal/2026-03.jsonl": [1.5, True, "0"]}},
        {"grown": {"data/journal/2026-03.jsonl": 7}},
        {"losses": [7]},
        {"losses": [{"at": 7, "where": "a", "what": "b"}]},
        {"losses": [LOSS | {"revisions": [1]}]},
        {"losses": [LOSS | {"revisions": [2, "3"]}]},
        {"losses": 7},
    ],
)
def test_a_record_that_names_what_no_record_has_is_damaged_and_no_other_file_is_touched(tmp_path, given):
    """Anybody can make a record with a good checksum, and a clone may bring it."""
    home = homes.fresh(tmp_path)
    homes.add(home, "one")
    names = ("victim", "victim.json", "victim.jsonl", ".aether/config.toml")
    for name in names:
        (tmp_path / name).write_bytes(b"")
    filled = {
        kind: {name.format(victim=tmp_path / "victim"): held for name, held in value.items()}
        if isinstance(value, dict)
        else value
        for kind, value in given.items()
    }
    sealed(home, **filled)
    assert codes(home) == [("error", "damaged", seals.PATH)]

    doctor.repair(home, now=homes.NOW)

    assert all((tmp_path / name).read_bytes() == b"" for name in names)
    assert {one.name.partition(".")[0] for one in (home / "quarantine").iterdir()} == {"seals"}
    assert {level for level, _, _ in codes(home)} == {"info"}


def test_a_record_of_every_kind_of_file_is_good(home):
    made = {"data/journal/2026-03.jsonl", "data/archive/items/2026-03.jsonl", "data/events.jsonl"}
    losses = [LOSS, LOSS | {"revisions": [2, 3]}]
    sealed(home, {name: [0, 0, ""] for name in made}, {"snapshots/[ERASED].json": "0"}, losses)

    found = seals.read(home)

    assert (found.state, found.grown.keys(), found.losses) == ("good", made, losses)


def test_snapshots_that_a_link_leads_to_stay_where_they_are(tmp_path):
    home = homes.fresh(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/package.json").write_bytes(b"{}")
    (home / "snapshots").symlink_to(tmp_path / "mine")
    sealed(home, whole={"snapshots/package.json": "0"})
    assert ("error", "damaged-file", "snapshots/package.json") in codes(home)

    doctor.repair(home, now=homes.NOW)

    assert (tmp_path / "mine/package.json").read_bytes() == b"{}"
    assert not (home / "quarantine").exists()


def test_of_a_file_that_was_cut_off_no_more_is_read_than_there_is(home):
    """A record may say that a file had more bytes than a machine has."""
    homes.add(home, "one")
    fold_home(home, now=homes.NOW)
    (name,) = seals.read(home).grown
    sealed(home, {name: [1 << 60, 1, "0"]})

    assert "of 1152921504606846976 bytes are left" in seals.fault(home, seals.read(home), name)


# Numbers that encoders write in several ways, and a half of a surrogate pair.
RECORDS = [{"a": 1e-5}, {"a": 2**70}, {"a": 1.0}, {"a": 1}, {"a": chr(0xD800)}, {"a": "é", "b": [1e16, -0.0]}]
PLAIN = [{"a": nth, "b": ["é", 0.5]} for nth in range(6)]
DAMAGES = {
    "nothing": lambda lines, nth: lines,
    "a lost line": lambda lines, nth: [*lines[:nth], *lines[nth + 1 :]],
    "a line that is there twice": lambda lines, nth: [*lines[: nth + 1], *lines[nth:]],
    "lines in another order": lambda lines, nth: [*lines[nth:], *lines[:nth]],
    "a changed byte": lambda lines, nth: [*lines[:nth], lines[nth].replace(b"a", b"b", 1), *lines[nth + 1 :]],
    "a wrong checksum": lambda lines, nth: [*lines[:nth], lines[nth][:-4] + b'x"}\n', *lines[nth + 1 :]],
    "a cut": lambda lines, nth: [*lines[:nth], lines[nth][:-1]],
    "half a line": lambda lines, nth: [*lines[:nth], lines[nth][:20]],
    "a line without a checksum": lambda lines, nth: [*lines[:nth], files.json_line(unsealed(lines[nth])) + b"\n"],
    "a line of another record": lambda lines, nth: [*lines[:nth], lines[nth - 1], *lines[nth + 1 :]],
}  # fmt: skip


@pytest.mark.parametrize("records", [RECORDS, PLAIN], ids=["odd", "plain"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_lines_are_examined_as_if_each_were_parsed_by_itself_for_each_question(home, damage, records):
    for nth in range(3):
        appends = {"items": [{"item": record} for record in records[nth * 2 : nth * 2 + 2]]}
        commit(home, lambda _, appends=appends: Change({}, appends), Author("add"), now=homes.NOW)
    fold_home(home, now=homes.NOW)
    paths = [home / "data" / name / "2026-03.jsonl" for name in ("journal", "archive/items")]
    whole = [path.read_bytes() for path in paths]

    for path, data in zip(paths, whole, strict=True):
        for nth in range(data.count(b"\n")):
            path.write_bytes(b"".join(DAMAGES[damage](data.splitlines(keepends=True), nth)))

            assert line_findings(home) == parsed_findings(home, *paths), (path.name, nth)
        path.write_bytes(data)


def line_findings(home):
    kinds = ("torn-line", "damaged-line", "missing-records", "history-gap")
    return {(one.code, one.where, one.message) for one in doctor.examine(home) if one.code in kinds}


def parsed_findings(home, months, items):
    """Return the same of a doctor that reads all files again for each question."""
    findings = set()
    for path, value_of in ((months, unsealed), (items, record_files.record_of)):
        name = path.relative_to(home).as_posix()
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                findings.add(("torn-line", name, "the last line was cut off."))
            elif value_of(line) is None:
                findings.add(("damaged-line", f"{name}:{number}", "the line is damaged."))
    history = [*journals.folded_entries(home)]
    stored = [*filter(None, map(record_files.record_of, items.read_bytes().splitlines(keepends=True)))]
    missing = [
        record
        for entry in history
        for record in record_files.numbered(Pending(entry.revision, "", entry.appends), "items")
        if not any(json_equal(record, other) for other in stored)
    ]
    if missing:
        what = f"missing, although the history has them: {len(missing)} record{'s' * (len(missing) > 1)}."
        findings.add(("missing-records", "data/archive/items", what))
    gaps = [pair for pair in pairwise(entry.revision for entry in history) if pair[1] > pair[0] + 1]
    for before, after in gaps[:1]:
        what = f"missing from the history; the next is {after}."
        findings.add(("history-gap", f"revision {before + 1}", what))
    return findings
