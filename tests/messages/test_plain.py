from aether.messages.sources import chat
from aether.messages.sources.chat import paragraph_records


def read(text):
    return [
        (record.line, record.text) for record in paragraph_records(text.encode().splitlines(keepends=True))
    ]


def test_each_paragraph_is_a_record_with_its_first_line():
    assert read("One.\nStill one.\n\n\nTwo.\n") == [(1, "One.\nStill one."), (5, "Two.")]


def test_a_heading_stays_with_what_it_heads():
    assert read("# Plan\n\n## First\n\nUse it.\n\nNext.") == [
        (1, "# Plan\n\n## First\n\nUse it."),
        (7, "Next."),
    ]


def test_a_fenced_block_is_not_cut_at_its_blank_lines():
    assert read("```\na\n\nb\n```\n\nAfter.") == [(1, "```\na\n\nb\n```"), (7, "After.")]


def test_a_page_without_a_break_is_cut_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(chat, "PARAGRAPH_CHARS", 30)
    text = "\n".join(f"line number {n}" for n in range(20))

    assert "\n".join(part for _, part in read(text)) == text


def test_an_empty_file_holds_nothing():
    assert read("") == read("\n \n") == []


def test_a_byte_order_mark_and_broken_bytes_are_survived():
    [record] = paragraph_records([b"\xef\xbb\xbfHi \xff\r\n"])

    assert record.text == "Hi \ufffd"
