import pytest

from aether.clock import stamp
from aether.errors import Conflict, InvalidInput
from aether.memory import gate, handoff, ingest, items, sessions, statements
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


def test_of_several_open_handoffs_the_answer_must_name_one():
    documents = opened(with_items(worked("old"), "new", at=later(9)), name="phase_1_newer")

    with pytest.raises(Conflict, match=r"phase_1_a, phase_1_newer\..*--handoff"):
        ingested(documents, answer())


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


@pytest.mark.parametrize("store", [ingested, created])
def test_a_session_of_the_future_is_dated_now(store):
    """Otherwise it would outlive every session to come, and each of those would be evicted at once."""
    documents = worked()

    done = after(documents, store(documents, answer(compressed_at="2126-01-01T00:00:00Z"), now=later(60)))

    assert sessions.sessions_of(done["memory"])[0]["compressed_at"] == stamp(later(60))


def test_the_threshold_signal_is_withdrawn_when_compression_is_not_needed():
    noted = emit(shipped()["pheromones"], "TOKEN_THRESHOLD", "full", now=NOW, id="token_threshold_1")
    documents = after(worked("word " * 9, capacity=10), noted)

    assert after(documents, ingested(documents, plain()))["pheromones"]["active_pheromones"] == []


def test_patterns_that_contradict_each_other_are_reported():
    documents = after(shipped(), created(shipped(), answer("a", high_value_items=[ATOMIC])))
    opposite = {**ATOMIC, "content": "Do not use atomic writes for state files"}
    documents = opened(with_items(documents, opposite["content"]))

    change = ingested(documents, plain("b", high_value_items=[opposite]))

    [pair] = change.result.contradictions
    assert {pair["pattern"], pair["other"]} == {ATOMIC["content"], opposite["content"]}
    assert change.appends["receipts"][0]["contradictions"] == [pair]


def test_the_session_just_stored_stays_however_old_it_says_it_is():
    """Evicted at once, it would be stored and archived again whenever it comes again."""
    documents = after(shipped(sessions=1), created(shipped(sessions=1), answer("newer")))

    change = created(documents, answer("older", compressed_at="2026-01-01"))

    assert names(after(documents, change)) == ["older"]
    assert created(after(documents, change), answer("older", compressed_at="2026-01-01")).patches == {}


@rows(("stated", "stored"), [(None, 0), ("many", 0), (-5, 0), (40.5, 40), (2**80, 0)])
def test_a_session_without_items_has_the_stated_number_of_tokens(stated, stored):
    done = after(shipped(), created(shipped(), answer(original_tokens=stated)))

    assert sessions.sessions_of(done["memory"])[0]["original_tokens"] == stored


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


def compressed(documents, phase, said, at, type="decision"):
    documents = with_items(documents, said, at=at, type=type, phase=phase)
    documents = opened(documents, phase, f"phase_{phase}_x")
    return after(
        documents, ingested(documents, plain(f"phase_{phase}_x"), phase, compression_id=f"phase_{phase}_x")
    )


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
        waiting = [item["metadata"]["proposal"] for item in gate.waiting_of(done)]
        assert [one["target"] for one in waiting] == ["phase_1_a/rules/0"] * (evidence == "agent")


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

    done = after(documents, change)
    [session] = sessions.sessions_of(done["memory"])
    assert note in session["metadata"]["items"]
    [waiting] = gate.waiting_of(done)
    about = waiting["metadata"]["proposal"]
    assert (about["how"], about["target"], waiting["type"]) == ("supersede", note["id"], "decision")


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
