from aether.conversation.shapes import Facts, Summary
from aether.conversation.summary import NOTE, is_summary, parsed, rendered
from aether.messages.convert import read
from aether.messages.tool_calls import ErrorFact, FileFact
from tests.tables import rows

FULL = Summary(
    3,
    Facts(
        goals=("Fix the login.", "Actually,\nfix the logout."),
        requests=("Add a test.",),
        constraints=("Never touch the migrations.",),
        decisions=("We chose SQLite.",),
        open_calls=("Bash: make",),
        files=(FileFact("a b.py", "changed", 3, "0f0f0f0f0f0f"), FileFact("2x x.py", "read", 1)),
        errors=(ErrorFact("$ make\nno rule", open=True), ErrorFact("tox", open=False)),
        names=("go test ./...", '"odd" name', "a|b", ""),
        lookups=("12 messages in full: transcript-001",),
    ),
    "Half done.\n## Not a heading",
)
TEXT = f"""<COMPACT-SUMMARY v3>
{NOTE}
## Goal
- Fix the login.
- Actually,
  fix the logout.
## Constraints
- Never touch the migrations.
## Decisions
- We chose SQLite.
## Requests
- Add a test.
## Files
- changed 3x @0f0f0f0f0f0f a b.py
- read 1x @ 2x x.py
## Open
- Bash: make
## Errors
- open: $ make
  no rule
- closed: tox
## Names
- go test ./... | "\\"odd\\" name" | "a\\u007cb" | ""
## Summary
Half done.
\\## Not a heading
## Look up
- 12 messages in full: transcript-001
</COMPACT-SUMMARY>"""


def message(text, role="assistant"):
    return read([{"role": role, "content": text}], "plain")[0]


def test_a_summary_reads_as_a_person_would_write_it():
    assert rendered(FULL) == TEXT


@rows(
    "text",
    [
        "",
        "Hello.",
        "<COMPACT-SUMMARY v1>",
        "<COMPACT-SUMMARY v1>\nabout",
        "<COMPACT-SUMMARY v1></COMPACT-SUMMARY>",
        "<COMPACT-SUMMARY vx>\n</COMPACT-SUMMARY>",
        "<COMPACT-SUMMARY>\n</COMPACT-SUMMARY>",
        f"He wrote:\n{TEXT}",
        f"{TEXT}\nWhat does it mean?",
        f"{TEXT}\n{TEXT}",
    ],
)
def test_a_quoted_or_cut_summary_is_not_read_as_one(text):
    assert parsed(text) is None


def test_what_others_wrote_into_it_is_read_as_well_as_it_can_be():
    text = """
<COMPACT-SUMMARY v7>
about
## Mood
- fine
## Goal
stray
-
## Files
- something else
## Errors
- it broke
## Names
- a_b | "torn
## Summary
One.
</COMPACT-SUMMARY>
"""

    assert parsed(text) == Summary(
        7,
        Facts(
            goals=("",),
            files=(FileFact("something else", "changed", 1),),
            errors=(ErrorFact("it broke", open=True),),
            names=("a_b", '"torn'),
        ),
        "One.",
    )


def test_only_a_message_of_nothing_but_a_summary_is_one():
    call = {"type": "tool_use", "id": "c", "name": "x", "input": {}}
    with_call = read([{"role": "assistant", "content": [{"type": "text", "text": TEXT}, call]}], "anthropic")[
        0
    ]
    answer = {"type": "tool_result", "tool_use_id": "c", "content": TEXT}

    assert is_summary(message(TEXT))
    assert is_summary(message(TEXT, "user"))
    assert not is_summary(message("Hello."))
    assert not is_summary(message(""))
    assert not is_summary(with_call)
    assert not is_summary(read([{"role": "user", "content": [answer]}], "anthropic")[0])


def test_a_file_that_was_created_says_how_often_it_was_changed_since():
    facts = Facts(
        files=(
            FileFact("a.md", "created", 16),
            FileFact("b.md", "created", 1),
            FileFact(", changed 2x", "created", 2),
        )
    )
    text = rendered(Summary(1, facts, ""))

    assert "- created, changed 15x a.md\n- created b.md\n" in text
    assert parsed(text).facts == facts


def test_the_directory_that_most_files_share_is_written_once():
    inner = ("/home/ada/app/src/a.py", "/home/ada/app/tests/2x.py")
    facts = Facts(files=tuple(FileFact(path, "changed", 2) for path in (*inner, "/tmp/note.md")))
    text = rendered(Summary(1, facts, ""))

    assert (
        "## Files in /home/ada/app/\n- changed 2x src/a.py\n- changed 2x tests/2x.py\n- changed 2x /tmp/note.md\n"
        in text
    )
    assert parsed(text).facts == facts


def test_beside_a_directory_that_is_written_once_a_relative_path_is_marked():
    given = ("/home/ada/a.py", "/home/ada/b.py", "src/c.py", "./d.py", "~/e.py", "")
    facts = Facts(files=tuple(FileFact(path, "read", 1) for path in given))
    text = rendered(Summary(1, facts, ""))

    assert (
        "## Files in /home/ada/\n- read a.py\n- read b.py\n- read ./src/c.py\n- read ././d.py\n- read ~/e.py\n"
        in text
    )
    assert parsed(text).facts == facts


@rows("path", ["/home/ada/./b.py", "/home/ada/~/b.py", "/home/ada//b.py"])
def test_no_directory_is_shared_where_the_rest_of_a_path_would_be_taken_for_another(path):
    facts = Facts(files=(FileFact("/home/ada/a.py", "read", 1), FileFact(path, "read", 1)))

    assert parsed(rendered(Summary(1, facts, ""))).facts == facts
