from aether.messages.sources.claude_code import records


def line(kind, content=None, **more):
    message = {"message": {"role": kind, "content": content}} if content is not None else {}
    return {"type": kind, "sessionId": "s1", "timestamp": "2026-03-01T10:00:00Z", **message, **more}


def read(*lines, **more):
    return list(records(enumerate(lines, start=1), **more))


def brief(*lines):
    return [(record.kind, record.text or record.tool) for record in read(*lines)]


def call(name, call_id, **arguments):
    return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]


def test_people_assistants_calls_and_results_become_records():
    assert brief(
        line("user", "Fix it."),
        line("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Looking."}]),
        line("assistant", call("Bash", "t1", command="make")),
        line(
            "user",
            [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}],
            toolUseResult={"stdout": "ok"},
        ),
    ) == [("user", "Fix it."), ("assistant", "Looking."), ("call", "Bash"), ("result", "ok")]


def test_a_record_says_where_it_stands():
    [record] = read(line("user", [{"type": "image"}, {"type": "text", "text": "see"}], uuid="u1"))[1:]

    assert (record.line, record.part, record.uuid, record.session, record.time) == (
        1,
        1,
        "u1",
        "s1",
        "2026-03-01T10:00:00Z",
    )


def test_mirrors_progress_and_bookkeeping_are_passed_over():
    assert (
        brief(
            {"type": "summary", "summary": "title", "leafUuid": "x"},
            {"type": "file-history-snapshot", "messageId": "m"},
            line("system", subtype="turn_duration", uuid="a"),
            line("attachment", attachment={"type": "hook_success", "content": "noise"}),
            line("progress", data={"type": "bash_progress", "output": "noise"}),
            line("progress", data="not a dict"),
            line("system", subtype="microcompact_boundary"),
        )
        == []
    )


def test_a_line_written_twice_is_read_once():
    twice = line("user", "Once.", uuid="u1")

    assert brief(twice, line("user", "Other."), twice) == [("user", "Once."), ("user", "Other.")]


def test_the_parts_of_one_message_share_its_id():
    texts = [{"role": "assistant", "id": "m1", "content": [{"type": "text", "text": text}]} for text in "ab"]

    found = read(*({"type": "assistant", "message": message} for message in texts))

    assert [record.message_id for record in found] == ["m1", "m1"]


def test_what_the_program_says_is_not_the_persons():
    assert [record.kind for record in read(line("user", "caveat", isMeta=True))] == ["system"]
    assert [record.kind for record in read(line("assistant", "API Error", isApiErrorMessage=True))] == [
        "system"
    ]


def test_what_was_typed_meanwhile_is_a_request():
    assert brief(
        line("attachment", attachment={"type": "queued_command", "prompt": "And the docs."}),
        line("attachment", attachment={"type": "queued_command", "prompt": call("Bash", "t")}),
    ) == [("user", "And the docs.")]


def test_a_boundary_and_its_summary_are_both_there():
    boundary = line("system", subtype="compact_boundary", content="Conversation compacted")
    summary = line("user", "Earlier we…", isCompactSummary=True)

    assert [kind for kind, _ in brief(line("user", "Go."), boundary, summary, line("user", "On."))] == [
        "user",
        "boundary",
        "summary",
        "user",
    ]


def test_a_summary_without_a_boundary_makes_one_unless_it_opens_the_file():
    summary = line("user", "Earlier we…", isCompactSummary=True)

    assert [kind for kind, _ in brief(line("user", "Go."), summary)] == ["user", "boundary", "summary"]
    assert [kind for kind, _ in brief(summary, line("user", "Go."))] == ["summary", "user"]


def test_a_boundary_counts_once_even_with_results_in_between():
    boundary = line("system", subtype="compact_boundary")
    summary = line("user", "Earlier we…", isCompactSummary=True)
    meta = line("user", "caveat", isMeta=True)

    found = brief(line("user", "Go."), boundary, meta, summary)

    assert [kind for kind, _ in found].count("boundary") == 1


def test_a_sidechain_carries_the_type_of_its_agent():
    found = read(
        line("assistant", call("Task", "t1", prompt="Map it.", subagent_type="scout"), uuid="a"),
        line("user", "Map it.", isSidechain=True, uuid="b", parentUuid=None),
        line("assistant", "Mapped.", isSidechain=True, uuid="c", parentUuid="b"),
        line("user", "Stray.", isSidechain=True),
    )

    assert [(record.agent, record.caste) for record in found] == [
        ("", ""),
        ("b", "scout"),
        ("b", "scout"),
        ("", "agent"),
    ]


def test_an_agent_inside_progress_carries_the_type_of_its_call():
    inner = {
        "type": "assistant",
        "uuid": "x",
        "timestamp": "t",
        "message": {"role": "assistant", "content": "Mapped."},
    }
    progress = line(
        "progress", data={"type": "agent_progress", "agentId": "a7", "message": inner}, parentToolUseID="t1"
    )

    found = read(line("assistant", call("Agent", "t1", prompt="Map it.")), progress)

    assert (found[1].agent, found[1].caste, found[1].uuid, found[1].text) == ("a7", "agent", "x", "Mapped.")


def test_a_sub_agents_own_file_carries_its_caste():
    [record] = read(line("user", "Map it.", isSidechain=True, agentId="a7", uuid="b"), caste="scout")

    assert (record.agent, record.caste) == ("a7", "scout")


def test_orphans_out_of_order_times_and_dangling_parents_are_no_obstacle():
    assert brief(
        line(
            "user", [{"type": "tool_result", "tool_use_id": "gone", "content": "late"}], parentUuid="nowhere"
        ),
        line("user", "Earlier.", timestamp="1999-01-01T00:00:00Z"),
    ) == [("result", "late"), ("user", "Earlier.")]


def test_an_exported_session_is_read_like_a_file():
    assert [record.line for record in read({"loglines": [line("user", "a"), 7, line("user", "b")]})] == [2, 4]


def test_whatever_is_no_object_is_passed_over():
    assert brief(7, [1], None, {"type": "user"}, {"type": "user", "message": "text"}, line("user", 7)) == []
