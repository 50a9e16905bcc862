from aether.messages.sources.openhands import events_of, records

EVENTS = [
    {"id": 0, "source": "agent", "action": "system", "args": {"content": "rules"}},
    {"id": 1, "source": "user", "action": "message", "args": {"content": "Fix it."}},
    {"id": 2, "source": "agent", "action": "run", "args": {"command": "make", "thought": "I build."}},
    {
        "id": 3,
        "source": "agent",
        "observation": "run",
        "cause": 2,
        "content": "boom",
        "extras": {"metadata": {"exit_code": 2}},
    },
    {"id": 4, "source": "agent", "action": "read", "args": {"path": "a.py"}},
    {
        "id": 5,
        "source": "agent",
        "observation": "error",
        "cause": 4,
        "message": "no such file",
        "extras": None,
    },
    {"id": 6, "source": "environment", "observation": "agent_state_changed", "content": ""},
    {"id": 7, "source": "agent", "action": "finish", "args": {"final_thought": "Done."}},
    {"id": 8, "source": "agent", "action": "message", "args": {}},
]


def brief(value):
    return [(record.kind, record.text or record.tool, record.is_error) for record in records([(1, value)])]


def test_actions_and_observations_become_records():
    assert brief(EVENTS) == [
        ("user", "Fix it.", False),
        ("assistant", "I build.", False),
        ("call", "run", False),
        ("result", "boom", True),
        ("call", "read", False),
        ("result", "no such file", True),
        ("assistant", "Done.", False),
    ]


def test_an_observation_answers_its_cause():
    found = list(records([(1, EVENTS)]))

    assert found[2].call_id == found[3].call_id == "2"


def test_events_are_found_in_pairs_and_under_history():
    assert len(events_of({"history": [[EVENTS[2], EVENTS[3]]], "instance_id": "i"})) == 2
    assert next(records([(1, {"history": EVENTS[1:2], "instance_id": "i"})])).session == "i"
    assert events_of({"history": "text"}) == events_of([7, {"action": "run"}]) == []
