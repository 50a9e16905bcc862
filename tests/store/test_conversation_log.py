import pytest

from aether.errors import Conflict, CorruptDocument, InvalidDocument, InvalidInput, StorageFailed, UnsafePath
from aether.store import conversations, files
from aether.store.conversations import expanded, extended, header, load, path_of, ranges
from tests import homes


def said(*words):
    return [{"role": "user", "content": word} for word in words]


@pytest.fixture
def talked(home):
    """Return a home whose conversation `talk` has three messages."""
    conversations.extend(home, "talk", said("one", "two", "three"), now=homes.NOW)
    return home


def rewritten(home, change, *, known=False):
    """Change the file, for a process that has read it before (`known`) or that has not."""
    path = path_of(home, "talk")
    path.write_bytes(change(path.read_bytes()))
    if not known:
        conversations._CACHE.clear()
    return path


def test_a_conversation_that_never_was_is_empty(home):
    log = load(home, "never")

    assert (log.texts, log.context, log.end) == ([], [], 0)
    assert not log.path.parent.exists()


def test_runs_of_numbers_keep_their_order():
    assert ranges([]) == []
    assert expanded(ranges([1, 2, 7, 5, 6, 5])) == [1, 2, 7, 5, 6, 5]


def test_only_what_was_appended_is_read_again(talked, monkeypatch):
    load(talked, "talk")
    conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    seen = []
    real = conversations.extended
    monkeypatch.setattr(conversations, "extended", lambda log, data: seen.append(data) or real(log, data))
    conversations._CACHE[path_of(talked, "talk")] = known = _short(talked)

    log = load(talked, "talk")

    assert len(log.texts) == 4
    assert len(seen[0]) == log.end - known.end < log.end


def _short(home):
    """The log as it was before the last line."""
    path = path_of(home, "talk")
    data = path.read_bytes()
    before = b"".join(data.splitlines(keepends=True)[:-1])
    return extended(conversations.Log(path, "talk", [], [], [], [], [], [], inode=path.stat().st_ino), before)


def test_a_log_that_was_read_does_not_change(talked):
    old = load(talked, "talk")

    conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    conversations.clear(talked, "talk", now=homes.NOW)

    assert (len(old.texts), old.context) == (3, [1, 2, 3])


def test_another_log_in_the_same_place_is_read_anew(talked):
    """A line that was read and then cut off, because it was never acknowledged, must not stay in the cache."""
    load(talked, "talk")
    line = conversations._message_line(3, b'{"role":"user","content":"other"}', "2026")
    rewritten(
        talked, lambda data: b"".join(data.splitlines(keepends=True)[:-1]) + files.seal(line), known=True
    )

    assert conversations.context(load(talked, "talk"))[-1]["content"] == "other"


def test_a_shorter_log_is_read_anew(talked):
    load(talked, "talk")
    rewritten(talked, lambda data: data.splitlines(keepends=True)[0], known=True)

    assert load(talked, "talk").texts == []


def test_only_so_many_logs_are_kept_in_memory(home, monkeypatch):
    monkeypatch.setattr(conversations, "_CACHED", 2)
    conversations._CACHE.clear()
    for name in ("a", "b", "c"):
        conversations.extend(home, name, said("one"), now=homes.NOW)

    assert list(conversations._CACHE) == [path_of(home, "b"), path_of(home, "c")]


@pytest.mark.parametrize(
    "torn", [b"{", b'{"n":4,"at":"2026","message":{}', b"\x00" * 40, b"{}\n", b"\xff\n{"]
)
def test_a_torn_end_is_not_there(talked, torn):
    rewritten(talked, lambda data: data + torn)

    log = load(talked, "talk")

    assert (len(log.texts), log.torn) == (3, torn)


def test_part_of_a_call_is_not_there(talked):
    whole = path_of(talked, "talk").read_bytes()
    conversations.extend(talked, "talk", said("four", "five", "six"), now=homes.NOW)
    lines = path_of(talked, "talk").read_bytes()[len(whole) :].splitlines(keepends=True)
    rewritten(talked, lambda data: whole + lines[0] + lines[1])

    log = load(talked, "talk")

    assert (len(log.texts), log.end) == (3, len(whole))


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_damaged_line_with_others_after_it_is_named(talked, line):
    def damage(data):
        lines = data.splitlines(keepends=True)
        lines[line] = lines[line].replace(b"e", b"b", 1)
        return b"".join(lines)

    path = rewritten(talked, damage)

    with pytest.raises(CorruptDocument, match=f"line {line + 1} is damaged") as refused:
        load(talked, "talk")
    assert refused.value.where == str(path)


def test_a_missing_line_is_named(talked):
    conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    rewritten(
        talked, lambda data: b"".join(x for n, x in enumerate(data.splitlines(keepends=True)) if n != 3)
    )

    with pytest.raises(CorruptDocument, match="line 4 is damaged"):
        load(talked, "talk")


def test_one_damaged_conversation_keeps_no_other_from_opening(talked):
    conversations.extend(talked, "other", said("one"), now=homes.NOW)
    rewritten(talked, lambda data: data.replace(b"one", b"eno"))

    assert conversations.context(load(talked, "other")) == said("one")


def test_two_ids_in_one_place_are_told_apart(talked):
    """On a disk that does not tell capitals from small letters, `Talk` and `talk` are one directory."""
    rewritten(talked, lambda data: data.replace(data.splitlines(keepends=True)[0], header("Talk")))

    with pytest.raises(Conflict, match="'Talk', not 'talk'"):
        load(talked, "talk")


def test_a_newer_format_is_left_alone(talked):
    newer = files.seal_json({"conversation": "talk", "format": 99})
    path = rewritten(talked, lambda data: newer)

    with pytest.raises(InvalidDocument, match="newer aether"):
        conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    assert path.read_bytes() == newer


def test_what_cannot_be_read_is_said(talked):
    path = path_of(talked, "talk")
    path.unlink()
    path.mkdir()

    with pytest.raises(StorageFailed, match="Nothing was read"):
        load(talked, "talk")


def test_a_damage_that_came_after_reading_is_seen_by_whoever_reads_anew(talked):
    load(talked, "talk")
    rewritten(talked, lambda data: data.replace(b"one", b"eno"), known=True)

    assert len(load(talked, "talk").texts) == 3
    with pytest.raises(CorruptDocument):
        load(talked, "talk", whole=True)


def test_no_id_leads_out_of_the_home(home, tmp_path):
    assert path_of(home, "../../evil").is_relative_to(home / "conversations")
    (home / "conversations").symlink_to(tmp_path)

    with pytest.raises(UnsafePath):
        path_of(home, "talk")
    with pytest.raises(InvalidInput):
        path_of(home, "")
