import json

import pytest

from aether.clock import stamp
from aether.errors import Conflict, InvalidInput
from aether.memory import handoff, ingest, items, sessions, statements
from aether.memory.briefing.kept import known_items
from aether.memory.signals import emit
from aether.memory.statements import end
from tests.memory.states import (
    NOW,
    after,
    answer,
    count,
    held,
    instruct,
    later,
    new_id,
    plain,
    shipped,
    texts,
    with_items,
)
from tests.tables import rows

ARCHITECT = {"backend": "test"}
ATOMIC = {"content": "Use atomic writes for state files", "relevance_score": 0.9, "type": "preference"}


def ingested(documents, given, phase=1, *, now=NOW, **options):
    return ingest.ingest(
        documents, given, phase=phase, now=now, new_id=new_id, count=count, architect=ARCHITECT, instruct=instruct,
        **options,
    )  # fmt: skip


def created(documents, given, phase=1, *, now=NOW):
    return ingest.create_session(documents, given, phase=phase, now=now, new_id=new_id, count=count)


def opened(documents, phase=1, name="phase_1_a"):
    return after(documents, handoff.start_handoff(documents["memory"], phase, compression_id=name, now=NOW))


def worked(*said, **limits):
    return opened(
        with_items(shipped(**limits), *(said or ("Decision: use JSON for state", "The schema was created")))
    )


def names(documents):
    found = [each["session_id"] for each in sessions.sessions_of(documents["memory"])]
    assert documents["memory"]["short_term_memory"]["current_sessions"] == len(found)
    return found


def test_the_prepared_items_become_one_session():
    documents = worked()

    change = ingested(documents, json.dumps(answer()))
    done = after(documents, change)

    assert held(done) == []
    assert names(done) == ["phase_1_test"]
    assert done["memory"]["compression"]["open"] == []
    assert change.result.items == 2
    assert change.result.stored
    session = change.result.session
    assert session == sessions.find_session(done["memory"], "phase_1_test")
    assert session["original_tokens"] == 9
    assert session["metadata"]["compression_id"] == "phase_1_a"
    assert done["memory"]["metrics"]["total_compressions"] == 1
    assert done["memory"]["metrics"]["average_compression_ratio"] == session["compression_ratio"]


def test_removed_items_are_archived_with_the_session_that_replaced_them():
    documents = worked()

    change = ingested(documents, answer())

    assert [each["item"] for each in change.appends["items"]] == held(documents)
    assert {
        (each["why"], each["session_id"], each["compression_id"]) for each in change.appends["items"]
    } == {("compressed", "phase_1_test", "phase_1_a")}


def test_a_receipt_and_an_event_record_the_compression():
    documents = worked()

    change = ingested(documents, answer())

    [receipt], [event] = change.appends["receipts"], change.appends["events"]
    assert receipt["receipt_id"] == event["receipt_id"] == change.result.receipt_id
    assert receipt["items"] == [each["id"] for each in held(documents)]
    assert receipt["tokens_before"] == 9
    assert receipt["tokens_after"] == change.result.session["compressed_tokens"]
    assert receipt["architect"] == ARCHITECT
    assert event["event"] == "memory.compressed"


def test_the_counts_of_a_model_are_not_believed():
    """Defect 5 of the original: an impossible ratio lost the session and cleared working memory all the same."""
    wild = answer(original_tokens=40.5, compressed_tokens="many", compression_ratio="2.5x", token_count=-1)

    session = ingested(worked(), wild).result.session

    assert session["original_tokens"] == 9
    assert session["compression_ratio"] == round(9 / session["compressed_tokens"], 2)


def test_the_phase_is_the_callers():
    """Defect 18 of the original: without a phase in the answer the session had none."""
    given = answer()

    assert ingested(worked(), given).result.session["phase"] == 1
    assert ingested(worked(), {**given, "phase": "7"}).result.session["phase"] == 1


def test_the_same_answer_twice_changes_nothing():
    """Defect 8 of the original: two sessions of one id."""
    done = after(worked(), ingested(worked(), answer()))
    done = with_items(done, "arrived later")

    again = ingested(done, json.dumps(answer(), indent=4))

    assert (again.patches, again.appends) == ({}, {})
    assert not again.result.stored
    assert again.result.session["session_id"] == "phase_1_test"


def test_another_answer_of_the_same_name_is_refused():
    done = opened(with_items(after(worked(), ingested(worked(), answer())), "Use JSON for state"))

    with pytest.raises(Conflict):
        ingested(done, answer(summary="The colony chose XML."))


def test_items_added_or_changed_meanwhile_stay():
    documents = worked("one", "two", "three")
    second = held(documents)[1]
    reworded = items.update(
        documents["memory"], second["id"], {"content": "two, corrected"}, now=NOW, count=count
    )
    documents = with_items(after(documents, reworded), "four", at=later(9))

    change = ingested(documents, plain())

    assert texts(after(documents, change)) == ["two, corrected", "four"]
    assert change.result.items == 2


def test_items_that_left_meanwhile_are_not_archived_again():
    documents = worked("one", "two")
    documents = after(documents, items.clear(documents["memory"], now=NOW))

    change = ingested(documents, plain())

    assert change.result.items == 0
    assert "items" not in change.appends
    assert change.result.session["original_tokens"] == 2, (
        "the session stands for what the architect was given"
    )
    assert change.result.session["compression_ratio"] > 0


def test_other_handoffs_without_items_are_closed_too():
    documents = opened(worked(), name="phase_1_newer")

    done = after(documents, ingested(documents, answer("phase_1_newer")))

    assert done["memory"]["compression"]["open"] == []


def test_an_answer_takes_the_handoff_that_it_names():
    documents = opened(with_items(worked("old"), "new", at=later(9)), name="phase_1_newer")

    change = ingested(documents, plain("phase_1_a"))

    done = after(documents, change)
    assert texts(done) == ["new"]
    assert [each["id"] for each in done["memory"]["compression"]["open"]] == ["phase_1_newer"]


def test_a_caller_may_name_the_handoff_whatever_the_answer_is_called():
    documents = opened(with_items(worked("old"), "new", at=later(9)), name="phase_1_newer")

    assert texts(after(documents, ingested(documents, plain(), compression_id="phase_1_a"))) == ["new"]


def test_of_several_open_handoffs_the_answer_must_name_one():
    documents = opened(with_items(worked("old"), "new", at=later(9)), name="phase_1_newer")

    with pytest.raises(Conflict, match=r"phase_1_a, phase_1_newer\..*--handoff"):
        ingested(documents, answer())


def test_an_open_handoff_without_items_does_not_make_several():
    documents = worked("old")
    documents = after(documents, items.clear(documents["memory"], now=NOW))
    documents = opened(with_items(documents, "new", at=later(9)), name="phase_1_newer")

    assert ingested(documents, plain()).result.items == 1


def test_the_answer_of_an_evicted_session_changes_nothing():
    documents = worked()
    done = ingested(documents, answer()).result.session
    found = {(done["session_id"], done["metadata"]["answer_sha256"]): done}

    again = ingested(documents, answer(), find_evicted=lambda name, digest: found.get((name, digest)))

    assert (again.patches, again.appends, again.result.stored) == ({}, {}, False)


def test_a_handoff_that_was_answered_meanwhile_takes_nothing_else():
    """A slow architect must not archive what arrived after the hand-off it was given."""
    documents = worked("old")
    documents = after(documents, ingested(documents, plain("quick")))
    documents = with_items(documents, "arrived since")

    with pytest.raises(Conflict, match="not open any more"):
        ingested(documents, plain("slow"), compression_id="phase_1_a")


def test_in_the_original_flow_nothing_has_to_be_prepared():
    documents = with_items(shipped(), "one", "two")
    documents = with_items(documents, "of a later phase", phase=2)

    change = ingested(documents, plain())

    assert texts(after(documents, change)) == ["of a later phase"]
    assert change.result.session["metadata"]["compression_id"] == "phase_1_unprepared"
    reported = "nothing was prepared: the session covers all items up to phase 1"
    assert reported in change.appends["receipts"][0]["notes"]
    assert reported not in ingested(worked(), plain()).result.notes


def test_with_nothing_to_compress_an_answer_is_refused():
    with pytest.raises(InvalidInput, match="nothing was prepared for phase 1"):
        ingested(shipped(), answer())


@rows(
    "given",
    [
        "I could not do it.", "", "null", "[]", "{}", "{" * 500, answer(summary=""), answer(summary="I'm sorry, I can't help."),
        answer(key_decisions="none"), answer(outcomes=None), answer(compressed_at="soon"), answer(id=["a"], session_id={}),
        answer(id=""), answer(session_id="x" * 300), answer(high_value_items=[5]), answer(summary=instruct({})["text"]),
        {key: value for key, value in answer().items() if key != "outcomes"}, {"a": float("nan")}, {1: {2, 3}},
    ],
)  # fmt: skip
def test_a_rejected_answer_changes_nothing_and_says_why(given):
    documents = worked()
    before = repr(documents)

    with pytest.raises(InvalidInput) as caught:
        ingested(documents, given)

    assert caught.value.fix
    assert repr(documents) == before


def test_missing_required_statements_are_carried_over_and_named():
    documents = with_items(shipped(), "Never push to main", type="constraint")
    documents = opened(documents)

    change = ingested(documents, plain())

    assert [(each["content"], each["why"]) for each in change.result.carried] == [
        ("Never push to main", "protected")
    ]
    high = change.result.session["high_value_items"]
    assert [(each["content"], each["carried"]) for each in high] == [("Never push to main", True)]
    assert change.appends["receipts"][0]["carried"] == change.result.carried


def test_corrections_of_an_answer_are_noted():
    change = ingested(worked(), answer(compressed_at="2020-01-01"))

    assert change.result.session["compressed_at"] == stamp(NOW)
    assert any("2020-01-01" in note for note in change.result.notes)
    assert change.appends["receipts"][0]["notes"] == change.result.notes


@pytest.mark.parametrize("store", [ingested, created])
def test_a_session_of_the_future_is_dated_now(store):
    """Otherwise it would outlive every session to come, and each of those would be evicted at once."""
    documents = worked()

    done = after(documents, store(documents, answer(compressed_at="2126-01-01T00:00:00Z"), now=later(60)))

    assert sessions.sessions_of(done["memory"])[0]["compressed_at"] == stamp(later(60))


def test_a_session_of_long_ago_can_be_evicted():
    documents = shipped(sessions=1)
    documents = after(documents, created(documents, answer("old", compressed_at="0099-01-01T00:00:00Z")))
    documents = after(documents, created(documents, answer("new")))

    assert names(documents) == ["new"]


def test_the_threshold_signal_is_withdrawn_when_compression_is_not_needed():
    noted = emit(shipped()["pheromones"], "TOKEN_THRESHOLD", "full", now=NOW, id="token_threshold_1")
    documents = after(worked("word " * 9, capacity=10), noted)

    assert after(documents, ingested(documents, plain()))["pheromones"]["active_pheromones"] == []


def test_the_threshold_signal_stays_while_compression_is_needed():
    noted = emit(shipped()["pheromones"], "TOKEN_THRESHOLD", "full", now=NOW, id="token_threshold_1")
    documents = with_items(worked("old", capacity=10), "word " * 9, at=later(9))
    documents = after(documents, noted)

    done = after(documents, ingested(documents, plain()))

    assert [each["id"] for each in done["pheromones"]["active_pheromones"]] == ["token_threshold_1"]


def test_a_weighty_statement_becomes_a_pattern():
    documents = worked(ATOMIC["content"])

    change = ingested(documents, plain(high_value_items=[ATOMIC]))

    [pattern] = change.result.patterns
    done = after(documents, change)
    assert [each["id"] for each in done["memory"]["long_term_memory"]["patterns"]] == [pattern]
    assert done["memory"]["metrics"]["total_pattern_extractions"] == 1
    assert done["memory"]["short_term_memory"]["sessions"][0]["metadata"]["related_patterns"] == [pattern]


def test_patterns_that_contradict_each_other_are_reported():
    documents = after(shipped(), created(shipped(), answer("a", high_value_items=[ATOMIC])))
    opposite = {**ATOMIC, "content": "Do not use atomic writes for state files"}
    documents = opened(with_items(documents, opposite["content"]))

    change = ingested(documents, plain("b", high_value_items=[opposite]))

    [pair] = change.result.contradictions
    assert {pair["pattern"], pair["other"]} == {ATOMIC["content"], opposite["content"]}
    assert change.appends["receipts"][0]["contradictions"] == [pair]


def test_the_session_over_the_limit_goes_after_its_patterns_were_extracted():
    documents = shipped(sessions=2)
    for nth, name in enumerate("ab"):
        documents = after(
            documents,
            created(documents, answer(name, compressed_at=f"2026-02-0{nth + 1}", high_value_items=[ATOMIC])),
        )
    documents = opened(with_items(documents, ATOMIC["content"]))

    change = ingested(documents, plain("c", high_value_items=[ATOMIC]))

    done = after(documents, change)
    assert names(done) == ["b", "c"]
    assert change.result.evicted == ["a"]
    assert [each["why"] for each in change.appends["items"]] == ["compressed", "evicted"]
    patterns = {each["pattern"]: each for each in done["memory"]["long_term_memory"]["patterns"]}
    pattern = patterns[ATOMIC["content"]]
    assert pattern["occurrences"] == 3
    assert [each["session_id"] for each in pattern["metadata"]["evidence"]] == ["a", "b", "c"]


def test_the_session_just_stored_stays_however_old_it_says_it_is():
    """Evicted at once, it would be stored and archived again whenever it comes again."""
    documents = after(shipped(sessions=1), created(shipped(sessions=1), answer("newer")))

    change = created(documents, answer("older", compressed_at="2026-01-01"))

    assert names(after(documents, change)) == ["older"]
    assert created(after(documents, change), answer("older", compressed_at="2026-01-01")).patches == {}


def test_a_limit_that_was_lowered_evicts_as_many_as_it_takes():
    """Defect 8 of the original: one eviction per call."""
    documents = shipped()
    for day in range(1, 6):
        documents = after(documents, created(documents, answer(f"s{day}", compressed_at=f"2026-02-0{day}")))
    documents["memory"]["short_term_memory"]["max_sessions"] = 2

    documents = after(documents, created(documents, answer("last")))

    assert names(documents) == ["s5", "last"]
    assert documents["memory"]["metrics"]["short_term_evictions"] == 4


def test_a_session_stored_by_itself_touches_nothing_else():
    documents = worked()

    change = created(documents, answer(original_tokens=500))
    done = after(documents, change)

    assert change.result == "phase_1_test"
    assert held(done) == held(documents)
    assert done["memory"]["compression"] == documents["memory"]["compression"]
    assert done["memory"]["metrics"]["total_compressions"] == 0
    [session] = sessions.sessions_of(done["memory"])
    assert session["original_tokens"] == 500
    assert created(done, answer()).patches == {}


@rows(("stated", "stored"), [(None, 0), ("many", 0), (-5, 0), (40.5, 40), (2**80, 0)])
def test_a_session_without_items_has_the_stated_number_of_tokens(stated, stored):
    done = after(shipped(), created(shipped(), answer(original_tokens=stated)))

    assert sessions.sessions_of(done["memory"])[0]["original_tokens"] == stored


def test_eviction_extracts_patterns_first():
    documents = shipped()
    for name in "abc":
        documents = after(documents, created(documents, answer(name, high_value_items=[])))
    documents["memory"]["short_term_memory"]["sessions"][0]["high_value_items"] = [ATOMIC]

    change = ingest.promote_and_evict(documents, "a", now=NOW, new_id=new_id)

    done = after(documents, change)
    assert change.result["session_id"] == "a"
    assert names(done) == ["b", "c"]
    assert ATOMIC["content"] in [each["pattern"] for each in done["memory"]["long_term_memory"]["patterns"]]


def test_a_summary_that_was_judged_takes_the_place_of_the_answers_however_long_it_is():
    documents = worked()
    prose = "The host summed it up at length. " * 60

    [session] = sessions.sessions_of(after(documents, ingested(documents, answer(), summary=prose))["memory"])

    assert session["summary"] == prose
    assert session["compressed_tokens"] > 60


def test_a_session_keeps_protected_texts_notes_files_and_errors_verbatim():
    said = [
        ("The format is frozen", "observation", {"metadata": {"protected": True}}),
        ("Always obey", "constraint", {"source": "mcp"}),
        ("Run it twice", "preference", {"caste": "builder"}),
        ("Never push", "constraint", {}),
        ("Changed /p/a.py" + ": x" * 200, "code_change", {}),
        ("`make test` failed: 2 tests", "error", {}),
        ("`make lint` failed: E501", "error", {}),
        ("Ran `make test`: ok", "command", {}),
    ]
    entries = [items.checked_entry(content, kind, **more) for content, kind, more in said]
    start = shipped()
    documents = opened(after(start, items.add(start["memory"], entries, now=NOW, new_id=new_id, count=count)))

    [session] = sessions.sessions_of(after(documents, ingested(documents, plain()))["memory"])

    assert session["metadata"]["items"] == items.items_of(documents["memory"])


def test_an_answer_without_ids_does_not_answer_the_hand_off_of_a_conversation():
    state = worked()
    given = {name: value for name, value in answer().items() if name not in ("id", "session_id")}
    state = after(state, ingested(state, given))
    entries = [items.checked_entry("Add a parser.", "user_input", metadata={"conversation": "c"})]
    state = after(state, items.add(state["memory"], entries, now=NOW, new_id=new_id, count=count))
    state = after(
        state, handoff.start_handoff(state["memory"], 1, compression_id="own", now=NOW, conversation="c")
    )

    again = ingested(state, given)

    assert not again.result.stored
    assert again.patches == {}


def test_a_session_knows_when_the_newest_of_its_items_was_noted_but_no_later_than_now():
    documents = worked()
    for item in documents["memory"]["working_memory"]["items"]:
        item["metadata"]["timestamp"] = f"2025-03-0{1 + item['content'].count('e') % 5}T08:00:00.000000Z"
    newest = max(item["metadata"]["timestamp"] for item in documents["memory"]["working_memory"]["items"])

    session = ingested(documents, answer()).result.session

    assert session["metadata"]["until"] == sessions.last_heard(session) == newest
    documents["memory"]["working_memory"]["items"][0]["metadata"]["timestamp"] = "2126-01-01T00:00:00.000000Z"
    assert ingested(documents, answer()).result.session["metadata"]["until"] == stamp(NOW)
    del session["metadata"]["until"]
    assert sessions.last_heard(session) == session["compressed_at"]


def compressed(documents, phase, said, at, type="decision"):
    documents = with_items(documents, said, at=at, type=type, phase=phase)
    documents = opened(documents, phase, f"phase_{phase}_x")
    return after(
        documents, ingested(documents, plain(f"phase_{phase}_x"), phase, compression_id=f"phase_{phase}_x")
    )


def test_history_that_is_imported_out_of_order_leaves_by_its_own_time():
    documents = shipped(sessions=2)
    for phase, at in ((1, later(-100)), (2, later(-9_000)), (3, later(-5_000)), (4, later(-4_000))):
        documents = compressed(documents, phase, f"Decision {phase}: use the parser of release {phase}", at)

    assert names(documents) == ["phase_1_x", "phase_4_x"]


def test_decisions_and_rules_of_an_evicted_session_hold_on_until_a_person_ends_them():
    documents = shipped(sessions=2)
    said = [
        "We use SQLite for the index",
        "Deploys go through Argo CD",
        "Sessions live in Redis",
        "Logs go to Loki",
    ]
    for phase, text in enumerate(said, 1):
        documents = compressed(documents, phase, text, later(phase * 10))
    kept = known_items(documents["memory"])
    assert len(names(documents)) == 2
    assert {*said} == {item["content"] for item in kept}

    [argo] = [item["id"] for item in kept if "Argo CD" in item["content"]]
    documents = after(documents, end(documents["memory"], argo, "resolved", at=stamp(later(60))))
    done = after(documents, ingest.promote_and_evict(documents, names(documents)[0], now=NOW, new_id=new_id))
    [kept] = sessions.sessions_of(done["memory"])
    assert [item["content"] for item in kept["metadata"]["items"]] == [
        "We use SQLite for the index",
        "Sessions live in Redis",
        "Logs go to Loki",
    ]


def talk(documents, *said, name="phase_1_a", at=NOW):
    """Return `documents` with captured items, (content, evidence, type), in an open hand-off."""
    entries = [
        items.checked_entry(content, kind, metadata={"evidence": evidence, "pointer": {"line": line}})
        for line, (content, evidence, kind) in enumerate(said, 1)
    ]
    documents = after(documents, items.add(documents["memory"], entries, now=at, new_id=new_id, count=count))
    return after(documents, handoff.start_handoff(documents["memory"], 1, compression_id=name, now=at))


FIRST = (
    ("Never mail a draft without asking me.", "person", "user_input"),
    ("I keep the drafts in Maildir for now. The search of attachments is broken.", "agent", "outcome"),
)
STATED = {
    "rules": [{"text": "Never mail a draft without asking.", "quote": "Never mail a draft without asking"}],
    "key_decisions": [{"decision": "Keep the drafts in Maildir.", "quote": "keep the drafts in Maildir", "items": ["2"]}],
    "open": [{"text": "The search of attachments is broken.", "quote": "search of attachments is broken"}],
    "state": "I keep the drafts in Maildir for now",
}  # fmt: skip


def first(**fields):
    documents = talk(shipped(), *FIRST)
    return after(documents, ingested(documents, answer("phase_1_a", **{**STATED, **fields})))


def entry(documents, nth, field):
    return sessions.sessions_of(documents["memory"])[nth][field]


def test_proven_statements_are_stored_with_items_quote_and_evidence():
    documents = first()
    [session] = sessions.sessions_of(documents["memory"])

    found = {stated.kind: stated for stated in statements.statements_of(session)}
    assert {kind: stated.evidence for kind, stated in found.items()} == {
        "state": "agent", "rule": "person", "decision": "agent", "open": "agent",
    }  # fmt: skip
    assert all(stated.quote and stated.items for stated in found.values())


def test_what_has_no_proof_is_dropped_and_counted():
    documents = talk(shipped(), *FIRST)
    lies = [{"text": "Always push.", "quote": "always push"}, *STATED["rules"]]

    change = ingested(documents, answer("phase_1_a", **{**STATED, "rules": lies, "next": ["Obey."]}))

    assert change.result.dropped == {"next": 1, "rules": 1}
    assert change.appends["receipts"][0]["dropped"] == change.result.dropped
    assert [one["text"] for one in change.result.session["rules"]] == [STATED["rules"][0]["text"]]


def test_an_answer_of_which_nothing_is_proven_is_rejected():
    documents = talk(shipped(), *FIRST)
    before = repr(documents)

    with pytest.raises(InvalidInput, match=r"rules: .Always push.*copy a few words"):
        ingested(documents, plain("phase_1_a", rules=["Always push."]))

    assert repr(documents) == before


def test_the_example_of_the_requirement_is_stored():
    documents = opened(with_items(shipped(), "Decision: Use JSON for state", type="decision"))

    [decision] = ingested(documents, answer()).result.session["key_decisions"]

    assert decision["decision"] == decision["quote"] == "Use JSON for state"


SECOND = (("The search of attachments works again. I moved the drafts to SQLite.", "agent", "outcome"),)
WORKS = {"text": "The search of attachments works.", "quote": "search of attachments works again"}
MOVED = {"decision": "Keep the drafts in SQLite.", "quote": "moved the drafts to SQLite"}


@rows(
    "target", [{"target": "phase_1_a/open/0"}, {"id": "phase_1_a/open/0"}, {"text": "The search of attachments is broken"}]
)  # fmt: skip
def test_what_is_resolved_ends_in_the_same_transaction(target):
    documents = talk(first(), *SECOND, name="phase_1_b", at=later(60))

    change = ingested(documents, plain("phase_1_b", resolved=[{**WORKS, **target}]), now=later(90))

    assert entry(after(documents, change), 0, "open")[0]["ended"] == {
        "how": "resolved", "at": stamp(later(90)), "by": "phase_1_b/resolved/0",
    }  # fmt: skip


@rows("named", ["phase_1_a/key_decisions/0", "drafts in Maildir"])
def test_a_superseded_decision_ends_by_the_new_one(named):
    documents = talk(first(), *SECOND, name="phase_1_b", at=later(60))

    done = after(
        documents, ingested(documents, plain("phase_1_b", key_decisions=[{**MOVED, "supersedes": named}]))
    )

    ended = entry(done, 0, "key_decisions")[0]["ended"]
    assert (ended["how"], ended["by"]) == ("superseded", "phase_1_b/key_decisions/0")
    assert "ended" not in entry(done, 1, "key_decisions")[0]


def test_a_persons_rule_is_revoked_by_a_person_only():
    given = {"text": "The rule about drafts is gone.", "target": "phase_1_a/rules/0"}

    for evidence in ("agent", "person"):
        said = ("You may mail drafts from now on.", evidence, "user_input")
        documents = talk(first(), said, name="phase_1_b", at=later(60))
        change = ingested(documents, plain("phase_1_b", resolved=[{**given, "quote": "may mail drafts"}]))
        done = after(documents, change)
        assert ("ended" in entry(done, 0, "rules")[0]) == (evidence == "person")
        proposals = change.result.session["metadata"].get("proposals", [])
        assert [one["target"] for one in proposals] == ["phase_1_a/rules/0"] * (evidence == "agent")


def test_what_was_noted_on_purpose_is_never_ended_by_a_session():
    documents = with_items(shipped(), "Keep the drafts in Maildir", type="decision")
    [note] = held(documents)
    said = ("Please move the drafts to SQLite.", "person", "user_input")
    documents = talk(documents, said, at=later(60))
    given = {
        "decision": "Move the drafts to SQLite.",
        "quote": "move the drafts to SQLite",
        "supersedes": note["id"],
    }

    change = ingested(documents, plain("phase_1_a", key_decisions=[given]))

    [session] = sessions.sessions_of(after(documents, change)["memory"])
    assert note in session["metadata"]["items"]
    [proposal] = session["metadata"]["proposals"]
    assert (proposal["kind"], proposal["target"]) == ("supersede", note["id"])


def test_a_captured_decision_that_is_superseded_leaves_the_session():
    asked = ("Asked: Where? Answered: in Maildir", "person", "decision")
    documents = talk(shipped(), asked, ("No, use SQLite.", "person", "user_input"))
    given = {"decision": "Use SQLite.", "quote": "use SQLite", "supersedes": "1"}

    change = ingested(documents, plain("phase_1_a", key_decisions=[given]))

    assert not any("Maildir" in item["content"] for item in change.result.session["metadata"]["items"])
    [old] = [record["item"] for record in change.appends["items"] if "Maildir" in record["item"]["content"]]
    assert old["metadata"]["state"] == "superseded"


def test_rules_and_decisions_of_a_person_outlive_their_session():
    documents = first()
    documents["memory"]["short_term_memory"]["max_sessions"] = 1
    documents = talk(documents, *SECOND, name="phase_1_b", at=later(60))

    done = after(documents, ingested(documents, plain("phase_1_b"), now=later(90)))

    assert names(done) == ["phase_1_b"]
    assert [one["text"] for one in entry(done, 0, "rules")] == [STATED["rules"][0]["text"]]
    assert entry(done, 0, "key_decisions") == [], "an agent's decision goes with its session"


def test_the_hand_off_lists_what_may_be_resolved():
    documents = talk(first(), *SECOND, name="phase_1_b", at=later(60))
    record = handoff.open_handoff(documents["memory"], 1)

    built = handoff.build_handoff(documents, record, held(documents), revision=0, now=later(60))

    assert {entry["id"]: entry["kind"] for entry in built["earlier"]} == {
        "phase_1_a/open/0": "open", "phase_1_a/rules/0": "rule", "phase_1_a/key_decisions/0": "decision",
    }  # fmt: skip


def test_the_built_in_architect_states_nothing():
    documents = talk(shipped(), *FIRST)

    change = ingest.ingest(
        documents, answer("phase_1_a", **STATED), phase=1, now=NOW, new_id=new_id, count=count,
        architect={"backend": "extractive"}, instruct=instruct,
    )  # fmt: skip

    assert not {"rules", "open", "state"} & change.result.session.keys()
