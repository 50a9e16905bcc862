"""Import and export by hand."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import aether
from aether.api import conversations, dedupe, goals, graph, importing
from aether.redact.redact import redacted
from aether.store.documents import OPTIONAL
from aether.store.log import seal_json
from tests import homes
from tests.cli.stage import shown
from tests.crash.test_damage import full_home
from tests.tables import rows


def test_a_dry_run_shows_the_items_and_stores_none(here, capsys):
    done = shown(capsys, "import", "session.jsonl", "--dry-run")

    assert "items would be stored" in done.out
    assert done.out.splitlines()[0].split() == ["type", "rel", "phase", "content"]
    assert len(aether.list_working_memory_items()) == 2


def test_phases_that_follow_each_other_are_named_as_a_range(here, capsys, tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"We decided to write ledger {number} once a day.\n")

    done = shown(capsys, "import", *(f"{number}.md" for number in range(3)))

    assert "Phases: 2-4.\n" in done.out


def test_importing_counts_and_importing_again_adds_nothing(here, capsys):
    done = shown(capsys, "import", "session.jsonl", "--phase", "7")

    assert "Phases: 7.\n" in done.out
    newest = aether.log(limit=1)[0].revision
    assert done.err == f"To undo it: aether undo {newest}\n"
    again = shown(capsys, "import", "session.jsonl", "--phase", "7").out
    assert "were known already, from this import or before it." in again


def test_compression_comes_next_after_an_import_only_if_working_memory_is_half_full(here, tmp_path, capsys):
    path = tmp_path / ".aether/data/memory.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('_tokens": 200000', '_tokens": 400'), encoding="utf-8")

    said = shown(capsys, "import", "session.jsonl").err

    assert said.endswith("Next: aether compress\n")


def test_an_import_without_new_items_says_what_it_stored(here, tmp_path, capsys):
    """Its revision is not empty: the words of a file of another name are kept for search once more."""
    said = "The words of the conversations are kept for search.\n"
    session = (tmp_path / "session.jsonl").read_bytes()
    (tmp_path / "renamed.jsonl").write_bytes(session)
    assert said not in shown(capsys, "import", "session.jsonl").out

    renamed = shown(capsys, "import", "renamed.jsonl")

    assert renamed.out.startswith("0 items stored")
    assert (said in renamed.out, "To undo it: " in renamed.err) == (True, True)
    again = shown(capsys, "import", "renamed.jsonl")
    assert (said in again.out, again.err) == (False, "")


def test_of_several_files_the_bad_ones_are_named_and_the_rest_is_imported(here, capsys, tmp_path):
    (tmp_path / "notes.md").write_text("We decided to use SQLite because it is one file.\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bin.dat").write_bytes(bytes(range(256)))

    done = shown(capsys, "import", "none.jsonl", "empty", "notes.md", "bin.dat", code=4)

    assert done.out.startswith("1 item stored")
    assert [line.partition(":")[0] for line in done.err.splitlines()[:3]] == [
        "none.jsonl",
        "empty",
        "bin.dat",
    ]
    assert "\nTo undo it: aether undo " in done.err


def test_what_a_sub_agents_rollout_repeats_of_another_is_said_to_be_skipped(here, capsys, tmp_path):
    def line(kind, **payload):
        return {"timestamp": "2026-04-11T20:42:00Z", "type": kind, "payload": payload}

    main = [
        line("session_meta", id="main"),
        line("response_item", type="message", role="user", content="Port the parser to Python 3.12."),
    ]
    child = line("session_meta", id="child", forked_from_id="main", source={"subagent": {}})
    for name, entries in (("main", main), ("child", [child, *main])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    said = "1 record in child.jsonl skipped: copied from session main, whose own transcript is imported.\n"
    assert said not in shown(capsys, "import", "child.jsonl", "--dry-run").out
    assert said in shown(capsys, "import", "child.jsonl", "main.jsonl").out
    again = json.loads(shown(capsys, "import", "child.jsonl", "main.jsonl", "--json").out)
    assert again["skipped_copies"] == [{"file": "child.jsonl", "conversation": "main", "records": 1}]


def test_an_import_says_how_files_without_times_are_dated(here, capsys, tmp_path):
    for name, changed in (("one", 1_700_000_000), ("two", 1_710_000_000)):
        path = tmp_path / f"{name}.md"
        path.write_text(f"Never use {name} tabs.\n")
        os.utime(path, (changed, changed))

    one = shown(capsys, "import", "one.md", "--dry-run").out
    both = shown(capsys, "import", "one.md", "two.md", "--dry-run").out

    assert one.endswith(
        "Entries without a time in one.md: dated by the last change of the file, 2023-11-14.\n"
    )
    assert (
        "Entries without a time in 2 files: dated by the last change of the file, 2023-11-14 to 2024-03-09."
        in both
    )


def test_an_import_that_is_interrupted_says_what_is_stored(here, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 1)
    commit, calls = importing._commit, []

    def interrupted(*arguments):
        stored = commit(*arguments)
        calls.append(stored)
        if len(calls) == 3:  # stored, but not yet in the result
            raise KeyboardInterrupt
        return stored

    monkeypatch.setattr(importing, "_commit", interrupted)
    said = shown(capsys, "import", "session.jsonl", code=130).err.splitlines()
    monkeypatch.setattr(importing, "_commit", commit)

    assert said[0] == "At least 2 items stored, from 1 file; the same command continues with the rest."
    assert said[1] == f"To undo it: aether undo {aether.log(limit=1)[0].revision}"
    assert " 3 were known already" in f" {shown(capsys, 'import', 'session.jsonl').out}".replace("\n", " ")


def interrupt(*arguments):
    raise KeyboardInterrupt


def test_of_a_very_long_line_of_text_an_extract_is_stored(here, capsys, tmp_path):
    (tmp_path / "huge.txt").write_text("We use SQLite because it is simple. " * 40_000)

    done = shown(capsys, "import", "huge.txt")

    assert done.out.startswith("1 item stored")
    assert "only an extract is kept." in done.err


def test_an_import_that_could_store_nothing_fails_and_says_why_once(here, capsys, tmp_path):
    item = {"type": "decision", "content": "We use SQLite because it is simple. " * 40_000}
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")

    done = shown(capsys, "import", "items.jsonl", code=4)

    assert "tokens do not fit" in done.err
    assert "extract" not in done.err


def test_advice_for_an_empty_import_names_options_that_were_given_only(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))

    assert "--format" not in shown(capsys, "import", "-", code=2).err
    assert "--format" not in shown(capsys, "import", "/dev/null", code=2).err
    assert "'export'" in shown(capsys, "import", "session.jsonl", "--format", "word", code=2).err


def test_importing_a_transcript_loads_nothing_of_conversations_or_exports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    aether.init()
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Never commit to main."}]')
    code = (
        "import sys; from aether.cli.main import main; assert main(['import', 'chat.json']) == 0; "
        "assert not {'aether.api.admin', 'aether.api.conversations', 'aether.store.conversations'} & {*sys.modules}"
    )

    subprocess.run([sys.executable, "-c", code], check=True, env=homes.plain_environment())


def test_an_import_of_many_batches_says_how_to_take_it_back(here, capsys, monkeypatch):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 1)
    before = aether.list_working_memory_items()

    reported = shown(capsys, "import", "session.jsonl").err.splitlines()[0]

    revisions = [line.revision for line in aether.log(limit=0) if line.operation == "import"]
    assert reported == f"To undo it: aether undo {revisions[0]}"
    aether.undo()
    assert aether.list_working_memory_items() == before


def test_bad_lines_are_named(here, tmp_path, capsys):
    lines = (tmp_path / "session.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "session.jsonl").write_text("".join([*lines[:5], "{ torn\n", *lines[5:]]), encoding="utf-8")

    done = shown(capsys, "import", "session.jsonl")

    assert "session.jsonl: line 6: " in done.err
    assert "1 line or file could not be read" in done.out


def test_what_is_no_message_in_a_list_is_named(here, tmp_path, capsys):
    listed = [{"role": "user", "content": "Use SQLite for the ledger."}, 5]
    (tmp_path / "chat.json").write_text(json.dumps(listed))

    done = shown(capsys, "import", "chat.json")

    assert "chat.json: line 1: messages[1]: 5 is not a message\n" in done.err
    assert "1 line or file could not be read" in done.out


def test_standard_input_is_read_for_a_dash(here, capsys, monkeypatch):
    item = json.dumps({"content": "Prefer plain functions.", "type": "decision"}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(item + b"\n")))

    assert "1 item stored" in shown(capsys, "import", "-", "--format", "items").out


def test_what_the_limit_pushed_out_is_reported(here, tmp_path, capsys):
    path = tmp_path / ".aether/data/memory.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            '"max_capacity_tokens": 200000', '"max_capacity_tokens": 400'
        ),
        encoding="utf-8",
    )

    assert (
        "did not fit into working memory and went to the archive"
        in shown(capsys, "import", "session.jsonl").out
    )


def test_the_whole_colony_is_exported(here, tmp_path, capsys):
    printed = json.loads(shown(capsys, "export").out)

    assert shown(capsys, "export", "--output", "all.json").out == "all.json\n"
    assert json.loads((tmp_path / "all.json").read_text(encoding="utf-8")) == printed
    assert printed["documents"]["memory"]["working_memory"]["items"]


def lived(directory):
    """Return a home with something in every document, an archive, and a conversation that was compacted."""
    home = full_home(directory)
    graph.create_entities(
        [{"name": "db", "entityType": "service", "observations": ["runs SQLite"]}], home=home
    )
    return home


def state(home):
    """Return what an export of `home` holds, without what belongs to the one home: places, revisions and times of logs."""
    found = aether.export(home=home)
    for kind in ("items", "receipts", "events", "history"):
        found[kind] = [{name: below for name, below in one.items() if name not in ("revision", "nth")} for one in found[kind]]  # fmt: skip
    talks = {one["conversation"]: (one["history"], one["context"]) for one in found.pop("conversations")}
    return found | {"revision": 0}, talks


def test_an_export_is_restored_into_an_empty_home_as_one_change(tmp_path, capsys):
    old, new = lived(tmp_path / "old"), homes.fresh(tmp_path / "new")
    file = tmp_path / "colony.json"
    shown(capsys, "--home", str(old), "export", "--output", str(file))
    empty = state(new)

    planned = json.loads(shown(capsys, "--home", str(new), "import", str(file), "--dry-run", "--json").out)
    assert state(new) == empty
    done = json.loads(shown(capsys, "--home", str(new), "import", str(file), "--json").out)

    assert planned["restored"] == done["restored"] | {"revision": 0}
    archived = [one.id for one in aether.list_archived(home=old)]
    assert sorted(done["restored"]["conversations"]) == sorted(["other", "talk", *archived])
    assert state(new) == state(old)
    assert aether.examine(home=new) == []
    assert [one["content"] for one in aether.search_memory("month 0", home=new)] == [one["content"] for one in aether.search_memory("month 0", home=old)]  # fmt: skip
    assert conversations.context("talk", home=new) == redacted(conversations.context("talk", home=old))
    aether.undo_compaction("talk", home=new)

    again = shown(capsys, "--home", str(new), "import", str(file), code=11)
    assert "the home is not empty: it has" in again.err
    assert "aether init --home DIR" in again.err

    shown(capsys, "--home", str(new), "undo")
    assert aether.list_working_memory_items(home=new) == []
    assert state(new)[0]["documents"] == empty[0]["documents"]


def test_what_is_no_export_is_imported_as_before_or_rejected(tmp_path, capsys):
    home = homes.fresh(tmp_path)
    file = tmp_path / "a.json"
    for text in ('{"documents": {}, "revision": 1}', "[]", "{"):
        file.write_text(text)
        assert "not an export" in shown(capsys, "--home", str(home), "import", "--format", "export", str(file), code=4).err  # fmt: skip
    file.write_text(
        json.dumps([{"role": "user", "content": 'Decided: keep "documents" and "conversations".'}])
    )
    assert "1 item stored" in shown(capsys, "--home", str(home), "import", str(file)).out
    broken = aether.export(home=home)
    broken["documents"]["memory"]["working_memory"] = 5
    file.write_text(json.dumps(broken))
    other = homes.fresh(tmp_path / "other")
    assert shown(capsys, "--home", str(other), "import", str(file), code=4).err
    assert aether.log(home=other) == aether.log(home=homes.fresh(tmp_path / "third"))


def test_an_export_is_not_restored_over_what_an_optional_document_holds(tmp_path, capsys):
    file = tmp_path / "colony.json"
    shown(capsys, "--home", str(homes.fresh(tmp_path / "old")), "export", "--output", str(file))
    fill = {
        "goals": lambda home: goals.add_goal("Ship it.", home=home),
        "graph": lambda home: graph.create_entities([{"name": "a", "entityType": "b", "observations": []}], home=home),
        "memories": lambda home: aether.memory_tool({"command": "create", "path": "/memories/a", "file_text": "a"}, home=home),
    }  # fmt: skip
    fill["retention"] = lambda home: aether.update_retention_policy(
        {"weights": {"time_span": 0.5}}, home=home
    )
    fill["proposals"] = lambda home: aether.add_working_memory_item(
        "Never push.", "constraint", source="mcp", home=home
    )
    fill["teamwork"] = lambda home: aether.claim("task:docs", by="scout", home=home)
    assert fill.keys() == set(OPTIONAL)

    for name, add in fill.items():
        home = homes.fresh(tmp_path / name)
        add(home)
        held = state(home)

        refused = shown(capsys, "--home", str(home), "import", str(file), code=11)

        assert "the home is not empty: it has 1 " in refused.err
        assert state(home) == held


STRANGE = {
    "a document of a newer release": lambda export: export["documents"].update(plans={"plans": []}),
    "a part of a newer release": lambda export: export.update(plans=[]),
    "a conversation without a name": lambda export: export["conversations"].append({"history": []}),
    "a conversation without messages": lambda export: export["conversations"].append(
        {"conversation": "talk"}
    ),
    "no conversation": lambda export: export["conversations"].append("talk"),
}


@rows("change", STRANGE.values(), ids=str)
def test_no_part_of_an_export_is_left_behind_in_silence(change, tmp_path, capsys):
    home, file = homes.fresh(tmp_path), tmp_path / "a.json"
    export = aether.export(home=home)
    change(export)
    file.write_text(json.dumps(export))

    assert "Nothing was stored" in shown(capsys, "--home", str(home), "import", str(file), code=4).err
    assert aether.log(home=home) == aether.log(home=homes.fresh(tmp_path / "other"))


def test_a_conversation_that_cannot_be_exported_is_named_by_export_and_import(tmp_path, capsys):
    home, file = homes.fresh(tmp_path / "old"), tmp_path / "a.json"
    conversations.add_messages("talk", [{"role": "user", "content": "one"}], home=home)
    (log,) = (home / "conversations").glob("*/history.jsonl")
    log.write_bytes(seal_json({"conversation": "talk", "format": 99}))

    said = shown(capsys, "--home", str(home), "export", "--output", str(file)).err
    assert "conversation talk is not in the export" in said
    new = homes.fresh(tmp_path / "new")
    done = shown(capsys, "--home", str(new), "import", str(file), "--json")
    assert "conversation talk is not in the export" in done.err
    assert json.loads(done.out)["restored"]["unread"] == ["talk"]
