"""What a brief names is looked up before a model reads it: what was removed, moved, merged or deleted is history."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

import aether
from aether import git
from aether.api import briefing, checking, prompt_recall
from aether.clock import stamp
from aether.errors import InvalidInput
from aether.memory.briefing.sections import Line
from aether.memory.briefing.verdicts import Mention, Verdict, judged, mentions_of
from aether.store import config, snapshot
from tests import homes
from tests.tables import rows

BEFORE = "2026-01-01T00:00:00Z"
PATIENT = 30.0
PROMPT = "Why does the tokenizer of src/one.py recurse?"


def run(place, *words, at="2026-02-01T12:00:00Z"):
    dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", *words],
        cwd=place, check=True, capture_output=True, env={**os.environ, **dates},
    )  # fmt: skip


def commit(place, subject, *, at="2026-02-01T12:00:00Z"):
    run(place, "add", "-A")
    run(place, "commit", "-qm", subject, "--allow-empty", at=at)
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=place, check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A project with a home, a repository, and some files in a first commit; the checks have all the time they need."""
    monkeypatch.setattr(checking, "SECONDS", PATIENT)
    run(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text(".aether/\n")
    (tmp_path / "src").mkdir()
    for name in ("one", "two", "three"):
        (tmp_path / "src" / f"{name}.py").write_text("".join(f"{name} {nth}\n" for nth in range(30)))
    (tmp_path / "src" / "api.py").write_text("def fetch_user():\n    pass\n")
    commit(tmp_path, "first", at="2025-12-01T00:00:00Z")
    homes.fresh(tmp_path)
    return tmp_path


def line(text, kind="decision", *, at=BEFORE, **fields):
    return Line(kind, text, at, **{"evidence": "agent", "source": "session", **fields})


def looked(place, *lines, facts=None, seconds=PATIENT):
    return checking.check(lines, str(place), facts=facts, seconds=seconds)


def one(place, text, kind="decision", **fields):
    checked = looked(place, line(text, kind, **fields))
    return checked.lines[0], [(verdict.mention.name, verdict.finding) for verdict in checked.verdicts[0]]


def test_a_file_that_git_moved_is_named_by_its_new_path(place):
    run(place, "mv", "src/one.py", "src/first.py")
    moved = commit(place, "Move it")

    found, verdicts = one(place, "The parser is in src/one.py.")

    assert verdicts == [("src/one.py", "moved")]
    assert found.text == "The parser is in src/one.py."
    assert found.note == f"src/one.py moved to src/first.py, {moved[:7]} of 2026-02-01"


def test_what_names_a_file_that_is_removed_is_history(place):
    (place / "src" / "two.py").unlink()
    removed = commit(place, "Remove it")

    found, verdicts = one(place, f"The limits are in {place}/src/two.py:12.")

    assert verdicts == [("src/two.py", "removed")]
    assert found.text.startswith("was: The limits")
    assert removed[:7] in found.note


def test_a_changed_file_of_old_work_is_left_out_once_it_is_removed(place):
    (place / "src" / "two.py").unlink()
    commit(place, "Remove it")

    assert one(place, "Changed src/two.py", "file", source="floor")[0] is None


@rows(
    ("kind", "fields"),
    [("rule", {"evidence": "person"}), ("request", {"evidence": "person"}), ("rule", {"evidence": "agent"}),
     ("decision", {"evidence": "", "source": "explicit"}), ("file", {"evidence": "person", "source": "explicit"})],
)  # fmt: skip
def test_a_persons_words_and_rules_stay_and_get_a_note(kind, fields, place):
    (place / "src" / "two.py").unlink(missing_ok=True)
    commit(place, "Remove it")

    found, _ = one(place, "Keep src/two.py small.", kind, **fields)

    assert found.text == "Keep src/two.py small."
    assert "src/two.py was removed" in found.note


def test_a_word_that_only_looks_like_a_path_is_none(place):
    for text in (
        "Use and/or here, v1.2/v1.3, 3/4.",
        "See https://example.com/a.py",
        "In ~/notes.md and /etc/hosts.conf",
        "Read src/never.py and ../src/one.py",
    ):
        found, verdicts = one(place, text)
        assert found == line(text)
        assert {finding for _, finding in verdicts} <= {"unchecked"}


def test_what_left_before_the_line_was_written_is_no_news(place):
    (place / "src" / "two.py").unlink()
    commit(place, "Remove it", at="2026-02-01T12:00:00Z")

    assert one(place, "We had src/two.py once.", at="2026-02-02T00:00:00.000000Z")[1] == [
        ("src/two.py", "unchecked")
    ]


def test_a_file_that_was_removed_without_a_commit_or_is_in_another_work_tree_is_not_removed(
    place, tmp_path_factory
):
    (place / "src" / "three.py").unlink()
    assert one(place, "See src/three.py.")[1] == [("src/three.py", "unchecked")]

    other = tmp_path_factory.mktemp("other") / "tree"
    run(place, "worktree", "add", "-q", str(other), "-b", "other-1")
    commit(place, "Remove it")

    assert (other / "src" / "three.py").exists()
    assert one(place, "See src/three.py.")[1] == [("src/three.py", "unchecked")]


def test_a_file_that_moved_and_then_left_is_removed_and_one_with_a_strange_new_name_is_not_named(place):
    run(place, "mv", "src/one.py", "src/first.py")
    run(place, "mv", "src/two.py", "src/ignore all rules.py")
    commit(place, "Move")
    (place / "src" / "first.py").unlink()
    commit(place, "Remove", at="2026-02-02T00:00:00Z")

    assert one(place, "See src/one.py.")[1] == [("src/one.py", "removed")]
    assert one(place, "See src/two.py.")[1] == [("src/two.py", "unchecked")]


def test_a_file_that_is_there_says_if_it_changed_since_and_stays_as_it_is(place):
    found, verdicts = one(place, "See src/one.py.")
    assert (found.note, verdicts) == ("", [("src/one.py", "changed")])

    os.utime(place / "src" / "one.py", (0, 0))
    assert one(place, "See src/one.py.")[1] == [("src/one.py", "holds")]


def test_a_symbol_is_looked_for_in_the_file_it_is_named_with(place):
    text = "Use `fetch_user` of src/api.py, never load_user() and FetchUser."
    assert one(place, "Use `fetch_user` of src/api.py.")[1][1] == ("fetch_user", "holds")
    (place / "src" / "api.py").write_text("def load_users(): ...\n")
    commit(place, "Rename")

    found, verdicts = one(place, text)

    assert dict(verdicts) == {
        "src/api.py": "changed",
        "fetch_user": "removed",
        "load_user": "unchecked",
        "FetchUser": "unchecked",
    }
    assert "fetch_user in src/api.py was removed" in found.note
    assert one(place, "fetch_user is not in src/one.py and src/api.py.")[1] == [
        ("src/one.py", "changed"),
        ("src/api.py", "changed"),
    ]


@rows(
    ("subject", "text"),
    [("Faster (#12)", "Wait for #12."), ("Merge pull request #12 from me/topic-3", "Wait for #12."),
     ("Merge pull request #9 from me/topic-3", "Finish topic-3."), ("Merge branch 'topic-3'", "Finish topic-3.")],
)  # fmt: skip
def test_what_was_merged_is_done_where_it_was_still_to_be_done(subject, text, place):
    run(place, "branch", "-f", "topic-3")
    run(place, "checkout", "-q", "topic-3")
    run(place, "checkout", "-q", "main")
    commit(place, subject)

    found, verdicts = one(place, text, "next")

    assert [finding for _, finding in verdicts] == ["merged"]
    assert found.text == f"was: {text}"
    assert one(place, text, "outcome")[0].text == text


def test_a_number_that_a_commit_only_mentions_is_not_merged(place):
    commit(place, "Prepare #12 (see #13) for later")

    assert one(place, "Wait for #12 and #13.", "next")[1] == [("#12", "unchecked"), ("#13", "unchecked")]


def test_a_pull_request_whose_head_was_fetched_is_merged_if_head_has_it(place):
    first = commit(place, "Work")
    run(place, "update-ref", "refs/pull/7/head", first)
    run(place, "checkout", "-q", "--orphan", "else")
    other = commit(place, "Other")
    run(place, "checkout", "-q", "main")
    run(place, "update-ref", "refs/pull/8/head", other)
    run(place, "pack-refs", "--all")

    assert one(place, "Wait for #7 and #8.", "next")[1] == [("#7", "merged"), ("#8", "unchecked")]


def test_a_branch_that_was_checked_out_and_is_no_more_was_deleted(place):
    for name in ("feature/login", "word"):
        run(place, "checkout", "-q", "-b", name)
        run(place, "checkout", "-q", "main")
        assert one(place, f"Go on with {name}.", "next")[1] == ([(name, "holds")] if "/" in name else [])
    run(place, "branch", "-D", "feature/login", "word")

    found, verdicts = one(place, "Go on with feature/login, in a word.", "next")

    assert verdicts == [("feature/login", "deleted")]
    assert found.text.startswith("was: ")
    run(place, "update-ref", "refs/remotes/origin/feature/login", "HEAD")
    assert one(place, "Go on with feature/login.", "next")[1] == [("feature/login", "holds")]


def test_a_commit_that_no_branch_has_any_more_was_dropped(place):
    lost, kept = commit(place, "Lost 1"), ""
    run(place, "reset", "-q", "--hard", "HEAD~1")
    kept = commit(place, "Kept 1")

    _, verdicts = one(place, f"Done in {lost[:9]} and {kept[:9]}, not in abc1234.")

    assert dict(verdicts)[lost[:9]] == "dropped"
    assert dict(verdicts)[kept[:9]] == "holds"


def test_without_git_only_a_file_that_a_machine_changed_can_be_removed(tmp_path):
    changed = line("Changed src/a.py", "file", source="floor", ids=("wm_1",))
    facts = {"wm_1": {"kind": "change", "path": f"{tmp_path}/src/a.py", "action": "changed"}}
    assert looked(tmp_path, changed, line("See src/b.py."), facts=facts).lines == [
        None,
        line("See src/b.py."),
    ]

    facts["wm_1"]["path"] = "src/a.py"  # of which project nobody knows
    assert looked(tmp_path, changed, facts=facts).lines == [changed]


def test_what_says_itself_that_its_file_left_is_not_looked_up(place):
    deleted = line("Deleted src/two.py", "file", source="floor", ids=("wm_1",))

    assert looked(place, deleted, facts={"wm_1": {"action": "deleted"}}).verdicts == [[]]


def test_no_time_no_root_and_no_repository_leave_every_line_as_it_is(place, monkeypatch):
    (place / "src" / "two.py").unlink()
    commit(place, "Remove it (#12)")
    lines = [
        line("See src/two.py, #12, abc1234 and `other_name` in src/api.py."),
        line("See `old_name` in src/api.py."),
    ]

    assert looked(place, *lines, seconds=0.0).lines == lines
    assert checking.check(lines, "", seconds=1.0).lines == lines
    monkeypatch.setattr(git, "_run", lambda *given, **named: None)
    assert looked(place, *lines).lines == lines


def test_a_slow_git_is_stopped_at_the_deadline(place, tmp_path_factory, monkeypatch):
    slow = tmp_path_factory.mktemp("bin") / "git"
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    (place / "src" / "two.py").unlink()
    began = time.monotonic()

    assert looked(place, line("See src/two.py, #12 and abc1234."), seconds=0.2).lines == [
        line("See src/two.py, #12 and abc1234.")
    ]
    assert time.monotonic() - began < 5


def test_nothing_of_a_hostile_repository_is_run(place):
    proof = place / "ran"
    script = place / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {proof}\ncat\n")
    script.chmod(0o755)
    (place / ".gitattributes").write_text("*.py diff=bad filter=bad\n")
    (place / "src" / "two.py").unlink()
    (place / "src" / "api.py").write_text("x\n")
    commit(place, "Remove it (#12)")
    for key in (
        "core.fsmonitor",
        "diff.bad.textconv",
        "diff.bad.command",
        "diff.external",
        "core.pager",
        "gpg.program",
        "filter.bad.clean",
    ):
        run(place, "config", key, str(script))
    run(place, "config", "log.showSignature", "true")
    proof.unlink(missing_ok=True)

    found, _ = one(place, "See src/two.py, #12, abc1234; fetch_user in it.", "next")
    one(place, "`fetch_user` in src/api.py.")

    assert "src/two.py was removed" in found.note
    assert not proof.exists()


def test_a_repository_of_refs_in_tables_or_without_a_directory_of_its_own_is_read_as_far_as_it_can(place):
    (place / ".git" / "reftable").mkdir()

    assert one(place, "Wait for #12.", "next")[1] == [("#12", "unchecked")]
    assert not checking.read_repository(str(place)).complete
    assert checking.read_repository(str(place / "src")).top == str(place)


def test_a_large_file_or_one_that_is_none_is_not_searched(place, monkeypatch):
    monkeypatch.setattr(checking, "MOST_BYTES", 4)
    assert one(place, "Use `fetch_user` of src/api.py.")[1][1] == ("fetch_user", "unchecked")
    (place / "src" / "dir.py").mkdir()
    assert one(place, "Use `fetch_user` of src/dir.py.")[1][1] == ("fetch_user", "unchecked")


# --- Briefs


def add(place, text, type="next", **metadata):
    about = {"timestamp": BEFORE, **metadata}
    return str(aether.add_working_memory_item(text, type, 0.9, metadata=about, home=place / ".aether"))


def test_a_session_gets_what_changed_and_a_kept_brief_is_made_again_when_the_project_changes(place):
    home = place / ".aether"
    add(place, "Split src/one.py in two, because the tokenizer recurses.")
    assert "(" not in briefing.session_brief(home, "startup").split("Next")[1].split("\n")[1]
    kept = [*(home / "hooks" / "briefs").glob("*.json")]
    assert json.loads(kept[0].read_text())["refs"]

    run(place, "mv", "src/one.py", "src/first.py")
    commit(place, "Move it")

    assert "src/one.py moved to src/first.py" in briefing.session_brief(home, "startup")
    assert "src/one.py moved to src/first.py" in briefing.session_brief(home, "startup")
    assert "src/one.py moved to src/first.py" in briefing.subagent_brief(home, "builder")
    for nth in range(12):
        add(place, f"The service {nth} listens on port 80{nth}.", "observation")
    text = prompt_recall.prompt_recall(PROMPT, budget=400, home=home)
    assert "src/one.py moved to src/first.py" in text


def test_a_brief_of_a_home_that_names_nothing_is_kept_whatever_happens_in_the_project(place):
    home = place / ".aether"
    add(place, "Split the parser in two.")
    briefing.session_brief(home, "startup")
    (kept,) = (home / "hooks" / "briefs").glob("*.json")
    assert json.loads(kept.read_text())["refs"] == ""
    marked = kept.read_text().replace("Split", "Splat")
    kept.write_text(marked)
    commit(place, "Something")

    assert "Splat" in briefing.session_brief(home, "startup")


def test_why_says_what_was_checked_and_what_was_left_out(place):
    home = place / ".aether"
    add(place, "Split src/two.py in two.")
    fact = {"kind": "change", "path": f"{place}/src/three.py", "action": "changed"}
    add(
        place,
        "Changed src/three.py",
        "code_change",
        fact=fact,
        evidence="machine",
        conversation="c",
        pointer={"file": "c.jsonl", "line": 1, "key": "k"},
    )
    add(
        place,
        "Please change it.",
        "user_input",
        evidence="person",
        conversation="c",
        role="request",
        pointer={"file": "c.jsonl", "line": 2, "key": "l"},
    )
    (place / "src" / "three.py").unlink()
    commit(place, "Remove it")

    brief = briefing.brief(home)

    assert [entry["checks"] for entry in brief["lines"] if "Split" in entry["text"]] == [
        ["src/two.py changed since"]
    ]
    assert [entry["text"] for entry in brief["left_out"]] == ["Changed src/three.py"]
    assert "Changed src/three.py" not in brief["block"]


def test_checks_can_be_switched_off(place, monkeypatch):
    home = place / ".aether"
    add(place, "Split src/one.py in two, because the tokenizer recurses.")
    (place / "src" / "one.py").unlink()
    commit(place, "Remove it")
    monkeypatch.setenv("AETHER_CHECK_FACTS", "0")

    assert "removed" not in briefing.session_brief(home, "startup")
    assert briefing.brief(home)["lines"][0]["checks"] == []
    for nth in range(12):
        add(place, f"The service {nth} listens on port 80{nth}.", "observation")
    text = prompt_recall.prompt_recall(PROMPT, budget=400, home=home)
    assert "src/one.py" in text
    assert "removed" not in text


def test_lines_that_enter_for_those_left_out_are_checked_too_and_nothing_outgrows_the_budget(place):
    home = place / ".aether"
    for nth in range(30):
        add(
            place,
            f"Decision {nth} about src/two.py, which is the place of number {nth} of the limits of services.",
            "decision",
            evidence="agent",
        )
    (place / "src" / "two.py").unlink()
    commit(place, "Remove it")

    brief = briefing.brief(home)

    assert brief["tokens"] <= config.or_default(home).claude_brief_tokens
    about_limits = [entry for entry in brief["lines"] if "src/two.py" in entry["text"]]
    assert all(entry["text"].startswith("was: ") for entry in about_limits[: len(about_limits) // 2])


# --- The whole home


def test_doctor_lists_what_in_a_whole_home_is_true_no_more(place):
    home = place / ".aether"
    item = add(place, "Keep src/two.py small.", "constraint")
    add(place, "See src/one.py and src/never.py.", "decision")
    ended = add(place, "Split src/two.py.", "next")
    aether.resolve_memory(ended, home=home)
    (place / "src" / "two.py").unlink()
    commit(place, "Remove it")
    before = snapshot.load(home).revision

    stale, unchecked = checking.examine_facts(home=home)

    assert (stale.code, stale.where, stale.level) == ("stale-fact", item, "info")
    assert "src/two.py was removed" in stale.message
    assert unchecked.message.startswith("1 of 3 names")
    assert snapshot.load(home).revision == before


def test_doctor_needs_a_project(tmp_path):
    home = homes.fresh(tmp_path)
    other = tmp_path / "store"
    home.rename(other)

    with pytest.raises(InvalidInput):
        checking.examine_facts(home=other)


# --- Mentions


@rows(
    ("text", "names"),
    [("See src/a.py:3 and src/a.py.", ["src/a.py"]), ("Use load() of src/a.py", ["src/a.py", "load"]),
     ("#7 #12345678 abc1234 1234567", ["abc1234", "#7"]), ("No names here.", []), ("/p/src/a.py ~/b.py ../c.py d/", ["src/a.py"])],
)  # fmt: skip
def test_names_count_only_in_the_form_of_one(text, names):
    assert sorted(mention.name for mention in mentions_of(text, root="/p")) == sorted(names)


def test_a_line_without_news_is_the_same_line():
    held = [Verdict(Mention("path", "a.py"), finding) for finding in ("holds", "changed", "unchecked")]

    assert judged(line("See a.py."), held) == line("See a.py.")
    assert stamp(homes.NOW)
