"""Memory on the command line: every step of the loop by hand, and the loop as one command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from aether.cli.complete import architects, castes, completes, ids, types
from aether.cli.forget import forget
from aether.cli.output import (
    LAYER_NAMES,
    LEAST_COLUMNS,
    Ask,
    Command,
    Group,
    Table,
    agreed,
    cut_to,
    emit,
    facts,
    is_typed,
    note,
    note_nothing,
    note_undo,
    one_line,
    pass_ask,
    plain,
    progress,
    read_text,
    say,
    undo_words,
    user_name,
    when,
)
from aether.memory.layers import WEAK_MATCH
from aether.memory.statements import end_words
from aether.text.words import matching_part, pluralize

# Before the second line of a hit, below its number.
_INDENT = "    "
# Of the title of a conversation beside a hit: a request may be its title.
TITLE_COLUMNS = 40
# Bytes of a journal that a command leaves that notes only what was read: to fold it takes longer than to search.
UNFOLDED_BYTES = 32 * 1024
LAYERS = ("working_memory", "short_term_memory", "long_term_memory", "archive")


def filter_options(command: Any) -> Any:
    """Add the options by which `memory show`, `memory search` and `recall` filter entries; all with the same meaning."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


_FILTERS = (
    click.option("--type", "types", multiple=True, shell_complete=completes(types), help="Only this type, such as decision, or rule for constraints and preferences; may be repeated"),
    click.option("--phase", type=click.IntRange(0), help="Only this phase"),
    click.option("--caste", shell_complete=completes(castes), help="Only this caste, in upper or lower case"),
    click.option("--project", help="Only this project: a part of its directory"),
    click.option("--conversation", help="Only this conversation: a part of its id, title or file"),
    click.option("--since", help="Not older than this ISO 8601 time or age: 36h, 7d, 2w, 3m, 1y"),
    click.option("--until", help="Older than this time"),
)  # fmt: skip


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given; 0 is a phase."""
    return {name: value for name, value in options.items() if value not in (None, "", ())}


def _one_word(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and len(value.split()) > 1:
        raise click.BadParameter(f"{value!r} is more than one word.", ctx, parameter)
    return value


@click.group("memory", cls=Group)
def memory_command() -> None:
    """Search, correct and promote memory.

    \b
    Example:
      aether memory show
    """


@click.command("add", cls=Command)
@click.argument("text")
@click.option(
    "--type", "type_", default="observation", shell_complete=completes(types), show_default=True, callback=_one_word, help="The kind of item, in one word",
)  # fmt: skip
@click.option("--relevance", default=0.5, show_default=True, type=float, help="Its importance, 0 to 1")
@click.option(
    "--source", default="queen", show_default=True, help="Its author; queen is the person whose colony it is"
)
@click.option("--caste", shell_complete=completes(castes), help="The caste of its author")
@click.option("--phase", type=click.IntRange(0), help="Its phase of the colony's work")
@click.option("--protect", is_flag=True, help="Never evict it, and keep it word for word")
@click.option("--metadata", help="More fields, as a JSON object")
@click.option(
    "--resolves",
    multiple=True,
    shell_complete=completes(ids),
    metavar="ID",
    help="An entry that it settles; may be repeated",
)
@click.option(
    "--supersedes",
    multiple=True,
    shell_complete=completes(ids),
    metavar="ID",
    help="An entry that it replaces; may be repeated",
)
@pass_ask
def add_command(
    ask: Ask, *, text: str, type_: str, relevance: float, source: str, caste: str | None, phase: int | None,
    protect: bool, metadata: str | None, resolves: tuple[str, ...], supersedes: tuple[str, ...],
) -> None:  # fmt: skip
    """Store one item and print its id.

    TEXT is the content, or - for standard input. Text typed at a terminal counts as a person's. It is in force
    at once, as typed: rule, constraint and preference are rules; decision, blocker and next mean what they say.

    \b
    Example:
      aether add "Use atomic writes for state" --type decision --relevance 0.9
      aether add "Tabs, not blanks" --type preference --supersedes "$ITEM"
    """
    from aether.api import working
    from aether.errors import resembling
    from aether.types import RELEVANCE_OF_TYPE

    extra: dict[str, Any] = _object(metadata) if metadata else {}
    extra |= {
        name: value for name, value in (("phase", phase), ("protected", protect or None)) if value is not None
    }
    if is_typed():
        extra.setdefault("evidence", "person")
    content = read_text("-") if text == "-" else text
    added = working.add_note(
        content, type_, relevance, source=source, caste=caste, metadata=extra, resolves=resolves, supersedes=supersedes,
        home=ask.place(),
    )  # fmt: skip
    if added.waits:
        note(
            ask,
            "It waits for the person: aether memory review."
            if added
            else "The person rejected this before: not stored.",
        )
    elif meant := resembling(type_, (*RELEVANCE_OF_TYPE, "rule")):
        note(
            ask,
            f"The type {plain(type_)!r} is new; to use the known type: aether memory update {added} --type {meant}",
        )
    if added and is_typed():
        _note_secret(ask, added, content)
    if added.evicted:
        say(f"Working memory was full: {pluralize(len(added.evicted), 'items')} moved to the archive.")
    if added.compression_needed:
        written = f"The hand-off is {added.handoff}."
        failed = 'No hand-off could be written; "aether doctor" says why.'
        hand_off = written if added.handoff else failed
        note(ask, f"Compression is needed: aether compress. {hand_off}")
    data = {
        "id": str(added), "compression_needed": added.compression_needed, "evicted": added.evicted,
        "handoff": added.handoff, "waits": added.waits,
    }  # fmt: skip
    emit(ask, data, str(added))


def _note_secret(ask: Ask, added: str, content: str) -> None:
    """Say that an entry seems to hold a secret: agents get what a person notes as it was typed."""
    from aether.api.home import redaction_rules
    from aether.redact.redact import redact

    if redact(content, redaction_rules(ask.place())) != content:
        ending = f"To take it out for good: aether memory forget {added} --erase"
        note(ask, f"It seems to hold a secret, and agents get it as you typed it. {ending}")


def _object(text: str) -> dict[str, Any]:
    from aether.errors import InvalidInput

    try:
        value = json.loads(text)
    except ValueError as reason:
        raise InvalidInput(
            f"not JSON ({reason}).", fix='Pass an object such as {"ticket": 7}.', where="--metadata"
        ) from reason
    if not isinstance(value, dict):
        raise InvalidInput(
            "not a JSON object.", fix='Pass an object such as {"ticket": 7}.', where="--metadata"
        )
    return value


@memory_command.command("show")
@click.argument("item_id", metavar="[ID]", required=False, shell_complete=completes(ids))
@click.option(
    "--limit", default=0, show_default=True, type=click.IntRange(0), help="Most items to list; 0 for all"
)
@filter_options
@pass_ask
def show(ask: Ask, /, item_id: str | None, limit: int, **filters: Any) -> None:
    """Print one entry, or list the items of working memory.

    ID is an item, session or pattern. It is looked up in working memory, where it counts the access, then in the other
    layers and the archive. A session reads in order: its summary, what was asked and done, the results, decisions with their
    reasons, rules, what is open and next. Without ID the items are listed, most recently used first: on a terminal in two
    lines each, in a pipe with whole texts.

    \b
    Example:
      aether memory show "$ITEM"
      aether memory show --type decision --since 7d
    """
    if item_id is None:
        _list(ask, limit, filters)
    elif limit or given(filters):
        raise click.UsageError("A filter and ID exclude each other.")
    else:
        _show_entry(ask, item_id)


def _show_entry(ask: Ask, item_id: str) -> None:
    from aether.api import recall, working
    from aether.errors import NotFound

    ask.least_to_fold = UNFOLDED_BYTES
    place = ask.place()
    try:
        item = working.get_working_memory_item(item_id, home=place)
    except NotFound:
        hit = recall.find_by_id(item_id, home=place)
        sections = recall.sections_of(item_id, home=place) if hit["type"] == "session" else {}
        emit(ask, hit["entry"], session_page(hit, sections) if sections else hit_page(hit))
    else:
        emit(ask, item, item_lines(item))


def _list(ask: Ask, limit: int, filters: dict[str, Any]) -> None:
    from aether.api import working
    from aether.api.overview import overview
    from aether.cli.status import empty_words

    place = ask.place()
    items = working.list_working_memory_items(limit, home=place, **given(filters))
    emit(ask, items, item_rows(items) if sys.stdout.isatty() else items_table(items))
    if not items and given(filters):
        note_nothing(ask, filters["types"], layers=["working_memory"])
    elif not items:
        note(ask, f"Working memory is {empty_words(overview(home=place))}.")


@memory_command.command("update")
@click.argument("item_id", shell_complete=completes(ids))
@click.option("--content", help="The new text, or - for standard input")
@click.option(
    "--type", "type_", callback=_one_word, shell_complete=completes(types), help="The new type, in one word"
)
@click.option("--relevance", type=float, help="The new relevance, 0 to 1")
@click.option("--protect/--unprotect", "protected", default=None, help="Set or remove the protection")
@click.option("--metadata", help="Metadata to merge in, as a JSON object; a null removes its key")
@pass_ask
def update(
    ask: Ask, *, item_id: str, content: str | None, type_: str | None, relevance: float | None,
    protected: bool | None, metadata: str | None,
) -> None:  # fmt: skip
    """Change one item and recount its tokens.

    Archived items and patterns are corrected with --content: a new item holds the new text, and all entries of the old
    text are forgotten, in one change that aether undo reverses.

    \b
    Example:
      aether memory update "$ITEM" --relevance 0.95
    """
    from aether.api import working
    from aether.errors import NotFound

    fields = {
        "content": read_text("-") if content == "-" else content,
        "type": type_,
        "relevance_score": relevance,
    }
    updates: dict[str, Any] = {field: value for field, value in fields.items() if value is not None}
    extra = _object(metadata) if metadata else {}
    if protected is not None:
        extra["protected"] = protected or None
    if extra:
        updates["metadata"] = extra
    if not updates:
        raise click.UsageError(
            "Nothing to change is given. Name --content, --type, --relevance, --protect or --metadata."
        )
    place = ask.place()
    try:
        item = working.update_working_memory_item(item_id, updates, home=place)
    except NotFound:
        from aether.api.forget import supersede

        author = "person" if is_typed() else "agent" if user_name() == "agent" else None
        if author:
            updates["metadata"] = {"evidence": author, **extra}
        outcome = supersede(item_id, updates, home=place)
        emit(ask, outcome.item, item_lines(outcome.item))
        forgotten = pluralize(len(outcome.forgotten), "entries")
        note(
            ask,
            f"A new item in place of {plain(item_id)}; {forgotten} with the old text forgotten. "
            f"{undo_words(outcome.revision, 'reverses it')}",
        )
    else:
        emit(ask, item, item_lines(item))


@memory_command.command("resolve")
@click.argument("entry_id", metavar="ID", shell_complete=completes(ids))
@click.option("--by", metavar="TEXT|ID", help="The text or the id of the entry that replaces it")
@pass_ask
def resolve(ask: Ask, entry_id: str, by: str | None) -> None:
    """End an entry that is settled: no brief shows it any more.

    ID is that of an item, a pattern, or a statement of a session; "aether brief --why" shows them. The entry stays in
    memory and is found by searches. With --by another entry takes its place; a text becomes a new item of the same type.

    \b
    Example:
      aether memory resolve "$ITEM"
      aether memory resolve "$OTHER" --by "At most 8 workers"
    """
    from aether.api.review import resolve_memory, supersede_memory

    place = ask.place()
    if by is None:
        outcome = resolve_memory(entry_id, home=place)
    else:
        evidence: Any = "person" if is_typed() else None
        outcome = supersede_memory(entry_id, by, evidence=evidence, home=place)
    suffix = f" by {outcome.by}" if outcome.by else ""
    emit(ask, outcome, f"{outcome.id} is {outcome.how}{suffix}: {one_line(outcome.text)}")
    note_undo(ask, [outcome.revision])


@memory_command.command("search")
@click.argument("query")
@click.option(
    "--limit", type=click.IntRange(1),
    help="Most hits  [default: 20, and for each layer search.max_results_per_layer of memory.json]",
)  # fmt: skip
@click.option(
    "--layer", "layers", multiple=True, type=click.Choice(LAYERS), help="Only this layer; may be repeated"
)
@filter_options
@click.option(
    "--by-layer", is_flag=True, help="Working memory first, then short-term, then long-term; LIMIT each"
)
@pass_ask
def search(ask: Ask, /, query: str, **options: Any) -> None:
    """Search all layers, the archive and imported conversations.

    A terminal shows two lines a hit, the second with the part of the text that answers; a pipe gets whole texts. What an
    agent wrote is marked "agent".

    \b
    Example:
      aether memory search "atomic writes" --limit 5
    """
    from aether.api import recall

    ask.least_to_fold = UNFOLDED_BYTES
    hits = recall.search_memory(query, home=ask.place(), **given(options))
    emit(ask, hits, hit_rows(hits) if sys.stdout.isatty() else hits_table(hits))
    if not hits:
        note_nothing(ask, options["types"], layers=options["layers"])


@memory_command.command("prepare")
@click.option("--phase", required=True, type=click.IntRange(0), help="The phase of the colony's work")
@click.option("--new", is_flag=True, help="Open another hand-off even if one is open")
@click.option(
    "--print", "prints", is_flag=True, help="Print the whole prompt for a model instead of the path"
)
@pass_ask
def prepare(ask: Ask, phase: int, new: bool, prints: bool) -> int:
    """Write the hand-off for an architect and print its path.

    It holds the items of the phase, of earlier phases and without a phase. While a hand-off is open, it is returned
    again.

    \b
    Example:
      aether memory prepare --phase 1
      aether memory prepare --phase 1 --print
    """
    from aether.api import compress

    prepared = compress.prepare(phase, manual=True, new=new, home=ask.place())
    if prepared.path is None:
        say(f"{prepared.reason} No compression needed.")
        emit(ask, prepared, [])
        return 1
    prompt = json.loads(prepared.path.read_text(encoding="utf-8"))["prompt"] if prints else {}
    emit(
        ask, prepared, plain(f"{prompt['text']}\n{prompt['conversation']}") if prints else str(prepared.path)
    )
    if prepared.newer:
        say(
            f"Note: without {pluralize(prepared.newer, 'newer items')} of phase {phase}; --new makes one with them."
        )
    note(
        ask,
        f"""Next:
  1. Give it to an architect, or read it yourself: prompt.text describes the session, prompt.conversation has what was said.
  2. Write the session as JSON into a file.
  3. aether memory ingest --phase {phase} FILE
  4. aether status --compressions""",
    )
    return 0


@memory_command.command("ingest")
@click.option("--phase", type=click.IntRange(0), help="The phase whose hand-off it answers")
@click.option("--handoff", metavar="ID", help="The hand-off that it answers, if several are open")
@click.option(
    "--session",
    default="",
    metavar="ID",
    help="Without --phase: the conversation, or the start of its id  [default: the newest]",
)
@click.argument("file")
@pass_ask
def ingest(ask: Ask, *, phase: int | None, handoff: str | None, session: str, file: str) -> int:
    """Store a session that an architect or agent wrote.

    FILE is one JSON object, or the architect's whole answer; - is standard input. A rejected answer changes nothing, and the
    corrections are listed. With --phase it answers a hand-off of "aether memory prepare".

    Without --phase, FILE is an agent's report on its own conversation. Its fields are lists, and all of them optional:
    state, next, rules, open and resolved hold objects with text and quote; decisions hold decision, rationale, quote and
    supersedes. A quote is copied verbatim from the conversation: a statement without one is listed and not stored. Exits
    1 if there is nothing to store.

    \b
    {"state": [{"text": "The importer works.", "quote": "12 passed"}],
     "decisions": [{"decision": "Use SQLite.", "rationale": "one file", "quote": "let's take SQLite"}]}

    \b
    Example:
      aether memory ingest --phase 1 session.json
      aether memory ingest answer.json
    """
    if phase is None:
        if handoff:
            raise click.UsageError("--handoff needs --phase.")
        return _close(ask, session, file)
    if session:
        raise click.UsageError("--session and --phase exclude each other.")
    from aether.api.compress import trigger_phase_boundary_compression

    compression = trigger_phase_boundary_compression(
        phase, read_text(file), home=ask.place(), architect={"backend": "manual", "model": ""},
        compression_id=handoff,
    )  # fmt: skip
    emit(ask, compression, ingested_lines(compression))
    return 0


def _close(ask: Ask, session: str, file: str) -> int:
    """Store what an agent says of its own conversation."""
    from aether.api.closing import close_session

    outcome = close_session(read_text(file), home=ask.place(), session=session)
    data = outcome._asdict()
    result = data["result"] = data.pop("ingested")
    lines = [f"  Not stored, for want of proof: {name}: {one_line(text)}" for name, text in outcome.dropped]
    emit(ask, data, [*ingested_lines(result), *lines] if result else outcome.reason)
    return 0 if result else 1


@click.command("compress", cls=Command)
@click.option(
    "--phase", type=click.IntRange(0), help="The phase of the colony's work  [default: each that has items]"
)
@click.option(
    "--architect",
    shell_complete=completes(architects),
    metavar="NAME",
    help="extractive, anthropic, openai, ollama, claude-code (your own claude), manual or command:'…'  [default: config.toml, else extractive]",
)
@click.option("--no-session", is_flag=True, help="Make no session: move every item to the archive")
@click.option("--yes", is_flag=True, help="Do not ask, with --no-session")
@pass_ask
def compress_command(
    ask: Ask, *, phase: int | None, architect: str | None, no_session: bool, yes: bool
) -> int:
    """Compress the items of each phase into a session.

    With --phase, makes one session of the items up to that phase. Without it, items without a phase belong to
    the first session, and phases of less than a page (400 tokens) are not compressed, because a session would
    be no smaller. It works at any time, however full working memory is.

    \b
    Example:
      aether compress
      aether compress --phase 1 --architect extractive
    """
    if not no_session:
        return _compress(ask, phase, architect)
    if phase is not None or architect:
        raise click.UsageError("--no-session takes neither --phase nor --architect.")
    return _clear(ask, yes=yes)


def _compress(ask: Ask, phase: int | None, architect: str | None) -> int:
    from aether.api.home import now
    from aether.clock import new_id

    results: list[dict[str, Any]] = []
    earlier_words = "" if phase is None else _earlier_words(ask, phase)
    try:
        large, too_small = _phases_by_size(ask) if phase is None else ([phase], [])
        group, revisions = new_id("compress", now()), list[int]()
        for number in large:
            part = f"{group}/{len(revisions) + 1}" if phase is None else ""
            compressed = _compressed(ask, number, architect, part=part)
            if compressed.ingested and compressed.ingested.revision:
                revisions.append(compressed.ingested.revision)
            results.append(
                {
                    "handoff": compressed.prepared.path, "reason": compressed.prepared.reason,
                    "architect": compressed.architect, "notes": compressed.notes, "result": compressed.ingested,
                }
            )  # fmt: skip
            if not ask.json:
                emit(ask, None, _compressed_lines(compressed))
            if compressed.ingested is None and compressed.prepared.path is not None:
                note(ask, f"Write the session by hand, then: aether memory ingest --phase {number} FILE")
                break  # each hand-off holds the items of the phases before it
    except BaseException:
        stored = [number["result"].session["session_id"] for number in results if number["result"]]
        if ask.json and stored:  # the one value on stdout is the error
            say(f"Stored before it failed: {', '.join(stored)}")
        raise
    if ask.json:
        emit(ask, results[0] if phase is not None else {"phases": results, "too_small": too_small}, "")
    if earlier_words:
        note(ask, earlier_words)
    if revisions:  # undone together
        note_undo(ask, revisions[-1:])
    return 0


def _clear(ask: Ask, *, yes: bool) -> int:
    """Move every item of working memory to the archive."""
    from aether.api import working

    place = ask.place()
    number = len(working.list_working_memory_items(home=place))
    if not number:
        emit(ask, {"archived": 0}, "Working memory is empty already: nothing was changed.")
        return 0
    if not agreed(
        ask, {"archived": 0}, [], f"{pluralize(number, 'items')} will move to the archive.", yes=yes
    ):
        return 1
    cleared = working.clear_working_memory(home=place)
    words = f"{pluralize(cleared, 'items')} moved to the archive. aether undo brings them back."
    emit(ask, {"archived": cleared}, words)
    return 0


def _compressed(ask: Ask, phase: int, architect: str | None, *, part: str) -> Any:
    """Compress `phase`, with the phases before it if it is no `part` of several, and say what went wrong on the way."""
    from aether.api import compress

    with progress(ask) as report:
        outcome = compress.compress(
            phase, architect=architect, home=ask.place(), progress=report, alone=bool(part), part=part
        )
    for words in outcome.notes:
        say(f"Note: {words.rstrip('.')}.")
    return outcome


def _phases_by_size(ask: Ask) -> tuple[list[int], list[int]]:
    """Return the phases of more than a page, and the others, which stay: their sessions would be no smaller."""
    from aether.api.compress import phases_to_compress
    from aether.memory.handoff import PAGE_TOKENS

    sizes = phases_to_compress(home=ask.place())
    small = [phase for phase, tokens in sizes.items() if 0 < tokens <= PAGE_TOKENS]
    if small:
        note(
            ask,
            f"Less than a page, so kept in working memory: phase {', '.join(map(str, small))}. A session would be no "
            "smaller; aether compress --phase N makes one of all items up to phase N.",
        )
    return [phase for phase in sizes if phase not in small], small


def _earlier_words(ask: Ask, phase: int) -> str:
    """Return which other phases a session of `phase` takes items of, else ""; without any of its own it may be a typing error."""
    from aether.api.working import list_working_memory_items

    items = list_working_memory_items(home=ask.place())
    used = {item["metadata"]["phase"] for item in items if "phase" in item["metadata"]}
    earlier = [str(entry) for entry in sorted(used) if entry < phase]
    if not earlier:
        return ""
    phrase = f"{'phase' if len(earlier) == 1 else 'phases'} {', '.join(earlier)}"
    if phase in used:
        return f"With phase {phase}, the items of {phrase} were compressed."
    return f"Phase {phase} had no items of its own: those of {phrase} were compressed as phase {phase}."


def _compressed_lines(outcome: Any) -> list[str]:
    if outcome.ingested is not None:
        return ingested_lines(outcome.ingested)
    if outcome.prepared.path is not None:
        return [str(outcome.prepared.path)]
    return [f"{outcome.prepared.reason} No compression needed."]


@memory_command.command("promote")
@click.argument("item", required=False, shell_complete=completes(ids))
@pass_ask
def promote(ask: Ask, item: str | None) -> None:
    """Promote what repeats, or one item, to long-term memory.

    \b
    Example:
      aether memory promote
      aether memory promote $ITEM
    """
    from aether.api import patterns

    place = ask.place()
    promotion = patterns.promote_item(item, home=place) if item else patterns.promote(home=place)
    text = [
        f"{pluralize(len(promotion.created), 'new patterns')}, {len(promotion.supported)} with more evidence."
    ]
    pairs = [pair._asdict() for pair in promotion.contradictions]
    emit(ask, promotion, text + contradiction_lines(pairs))


@memory_command.command("review")
@click.option("--keep", multiple=True, metavar="ID", help="Keep the entry; this doubt is not raised again")
@click.option("--forget", "drop", multiple=True, metavar="ID", help="Forget its first entry")
@click.option(
    "--correct", multiple=True, nargs=2, metavar="ID TEXT", help="Replace the text of its first entry"
)
@click.option("--newer", is_flag=True, help="Forget or correct the second entry of a pair, the newer one")
@click.option("--accept", multiple=True, metavar="ID", help="Put a waiting entry in force")
@click.option("--reject", multiple=True, metavar="ID", help="Drop a waiting entry; it is not proposed again")
@click.option(
    "--all", "every", type=click.Choice(["accept", "reject"]), help="Decide about all waiting entries"
)
@click.option(
    "--session",
    default="",
    metavar="NAME",
    help="With --all: only entries of this conversation, file or author",
)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1), help="Most doubts to show or ask about"
)
@pass_ask
def review(
    ask: Ask, keep: tuple[str, ...], drop: tuple[str, ...], correct: tuple[tuple[str, str], ...], *, newer: bool,
    accept: tuple[str, ...], reject: tuple[str, ...], every: str | None, session: str, limit: int,
) -> None:  # fmt: skip
    """Review what waits for you and what is doubtful.

    Statements of agents, importers and architects wait here as memory.agents decides, each with its quote, its source and
    what it would change; no model sees one before it is accepted. Doubtful entries, also in sessions, are secrets, orders
    to a model, decisions that an agent wrote, statements kept twice, and entries not seen for long. A terminal asks about
    each; elsewhere they are listed with the commands that settle them. Every answer is one change that aether undo
    reverses.

    \b
    Example:
      aether memory review
      aether memory review --json
      aether memory review --all reject --session poisoned.jsonl
    """
    from aether.api import review as reviewing

    place = ask.place()
    if session and not every and (accept or reject or keep or drop or correct):
        raise click.UsageError("--session goes with --all, or alone.")
    settled = _decided(place, accept, reject, every, session)
    is_decided = bool(settled or accept or reject or every)
    answers: list[tuple[str, Any, str]] = [(doubt_id, "keep", "") for doubt_id in keep]
    answers += [
        *((doubt_id, "forget", "") for doubt_id in drop),
        *((doubt_id, "correct", text) for doubt_id, text in correct),
    ]
    settled += [
        _settlement(reviewing.settle(doubt_id, answer, text, newer=newer and answer != "keep", home=place))
        for doubt_id, answer, text in answers
    ]
    doubts = _doubts(place, session)
    is_answered = bool(answers) or is_decided
    asks = not is_answered and not ask.json and sys.stdin.isatty() and sys.stdout.isatty()
    if asks:
        settled = [*map(_settlement, _ask_about(doubts[:limit], place))]
        doubts = _doubts(place, session)
    _emit_review(ask, doubts, settled, limit, is_listed=not (is_answered or asks))


def _emit_review(
    ask: Ask, doubts: Sequence[Any], settled: Sequence[Any], limit: int, *, is_listed: bool
) -> None:
    """Print the first doubts with the commands that settle them, and what was settled."""
    listed = doubts[:limit]
    data = {
        "doubts": [{**doubt._asdict(), "commands": _commands(doubt)} for doubt in listed],
        "settled": settled, "more": max(0, len(doubts) - limit),
    }  # fmt: skip
    lines = [
        line
        for doubt in listed
        for line in [*doubt_lines(doubt), *map("  {}".format, _commands(doubt).values()), ""]
    ]
    emit(ask, data, lines if is_listed else [])
    if settled:
        note(ask, f"{len(settled)} reviewed, {len(doubts)} left. aether undo reverses the last answer.")
    elif not doubts:
        note(ask, "Nothing to review.")


def _decided(
    place: Any, accept: Sequence[str], reject: Sequence[str], every: str | None, session: str
) -> list[dict[str, str]]:
    """Decide about what waits, and return the answers."""
    from aether.api import review as reviewing

    decisions = [(accept, "accept"), (reject, "reject")]
    if every:
        decisions.append(([item["id"] for item in reviewing.waiting(session, home=place)], every))
    settled = []
    for chosen, answer in decisions:
        done = reviewing.decide(chosen, answer == "accept", home=place)
        settled += [{"id": id_, "answer": answer, "entry": entry} for id_, entry in zip(*done, strict=True)]
    return settled


def _doubts(place: Any, session: str) -> list[Any]:
    from aether.api import review as reviewing

    doubts = reviewing.review(home=place)
    if not session:
        return doubts
    ids = {item["id"] for item in reviewing.waiting(session, home=place)}
    return [doubt for doubt in doubts if doubt.id in ids]


def _settlement(settlement: Any) -> dict[str, str]:
    return {"id": settlement.doubt.id, "answer": settlement.answer, "entry": settlement.entry}


def _commands(doubt: Any) -> dict[str, str]:
    """Return the commands that settle a doubt."""
    base = "aether memory review"
    if doubt.kind == "proposal":
        return {
            "accept": f"{base} --accept {doubt.id}", "reject": f"{base} --reject {doubt.id}",
            "correct": f'{base} --correct {doubt.id} "TEXT"',
        }  # fmt: skip
    commands = {
        "keep": f"{base} --keep {doubt.id}", "forget": f"{base} --forget {doubt.id}",
        "correct": f'{base} --correct {doubt.id} "TEXT"',
    }  # fmt: skip
    if len(doubt.entries) > 1:
        commands |= {f"{name}_newer": f"{commands[name]} --newer" for name in ("forget", "correct")}
    return commands


def doubt_lines(doubt: Any) -> list[str]:
    """Return one doubt as lines: its kind and reason, then its entries."""
    entries = (
        f"  {number}. {entry.at[:10]} {entry.type} {'/'.join(filter(None, entry.name))}: {one_line(entry.text)}"
        for number, entry in enumerate(doubt.entries, 1)
    )
    about = {"quote": doubt.quote, "source": doubt.source, "change": doubt.effect}
    details = (f"     {name}: {one_line(text)}" for name, text in about.items() if text)
    return [f"{doubt.kind}: {plain(doubt.why)}", *entries, *details]


def _ask_about(doubts: Sequence[Any], place: Any) -> list[Any]:
    """Ask a person about each doubt, and return those that were settled."""
    from aether.api import review as reviewing

    settled = []
    for number, doubt in enumerate(doubts, 1):
        say(f"{number} of {len(doubts)}", *doubt_lines(doubt))
        single = "keep, correct, forget, skip, quit", "kcfsq"
        pair = "keep both, correct 1 or 2, forget 1 or 2, skip, quit", ["k", "c1", "c2", "f1", "f2", "s", "q"]
        waiting = "accept, correct, reject, skip, quit", "acrsq"
        words, letters = waiting if doubt.kind == "proposal" else pair if len(doubt.entries) > 1 else single
        chosen = click.prompt(words, type=click.Choice([*letters]), default="s", err=True)
        if chosen == "q":
            break
        if chosen != "s":
            text = click.prompt("The correct text", err=True) if chosen[0] == "c" else ""
            answer: Any = {"k": "keep", "a": "keep", "c": "correct", "f": "forget", "r": "forget"}[chosen[0]]
            settled.append(reviewing.settle(doubt.id, answer, text, newer=chosen[1:] == "2", home=place))
    return settled


def item_lines(item: Mapping[str, Any], *, layer: str = "working_memory") -> list[str]:
    """Return one item, of working memory or the archive, as lines."""
    metadata = item["metadata"]
    rows = [
        ("id", item["id"]), ("layer", LAYER_NAMES[layer]), ("type", item["type"]), ("relevance", metadata["relevance_score"]),
        ("tokens", item["token_count"]), ("added", when(metadata["timestamp"])),
        *([("source", metadata["source"])] if metadata["source"] != "queen" else []),
        ("caste", metadata["caste"] or "—"), ("phase", metadata.get("phase", "—")),
        ("protected", "yes" if metadata.get("protected") else "no"),
        ("read", f"{metadata['access_count']}x, last {when(metadata['last_accessed'])}"),
    ]  # fmt: skip
    pointer = metadata.get("pointer") or {}
    if "file" in pointer:
        rows.append(("from", f"{pointer['file']}, line {pointer.get('line', '?')}"))
    if "host" in pointer:
        rows.append(("host", pointer["host"]))
    return [*facts(((name, plain(str(value))) for name, value in rows), indent=0), "", plain(item["content"])]


def items_table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Return items, one per line with their whole text."""
    rows = [
        (
            item["id"], item["type"], f"{item['metadata']['relevance_score']:.2f}", item["token_count"],
            origin, item["content"],
        )
        for item, origin in zip(items, origins([*map(_place_of, items)]), strict=True)
    ]  # fmt: skip
    return Table(rows, head=("id", "type", "rel", "tokens", "from", "content"), right=[2, 3])


def item_rows(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return items as two lines each for a terminal: the place, and the start of the text."""
    places = [
        (item["id"], item["type"], f"{item['metadata']['relevance_score']:.2f}", origin)
        for item, origin in zip(items, origins([*map(_place_of, items)]), strict=True)
    ]
    return two_lines(places, [(item["content"], ()) for item in items])


def _place_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of the place of an item, by the names of a hit."""
    return {**item["metadata"], "at": item["metadata"]["timestamp"], "entry": item}


def hits_table(hits: Sequence[Mapping[str, Any]]) -> Table:
    """Return search hits, best first, one per line with their whole text."""
    rows = [
        (f"{hit['score']:.2f}", LAYER_NAMES[hit["layer"]], hit["id"], origin, hit_text(hit))
        for hit, origin in zip(hits, origins(hits), strict=True)
    ]
    return Table(rows, head=("score", "layer", "id", "from", "text"), right=[0])


def hit_rows(hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return search hits, best first, as two lines each for a terminal: the place, and the part that answers."""
    # What a narrow terminal has no room for is cut: the id is needed to read on.
    places = [
        (hit["id"], str(hit["type"] or ""), origin, LAYER_NAMES[hit["layer"]])
        for hit, origin in zip(hits, origins(hits), strict=True)
    ]
    return two_lines(places, [(hit["passage"] or hit["content"], hit["matched"]) for hit in hits])


def two_lines(places: Iterable[Sequence[str]], texts: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return a line of each place, and below it the part of its text that holds most of the words beside it."""
    from shutil import get_terminal_size

    width = max(LEAST_COLUMNS, get_terminal_size().columns)
    lines = []
    for nth, (place, (text, matched)) in enumerate(zip(places, texts, strict=True), start=1):
        line = one_line(" · ".join(filter(None, place)))
        part = matching_part(plain(text), matched, max(LEAST_COLUMNS, width - len(_INDENT)))
        lines += [cut_to(f"{nth:>2}. {line}", width), cut_to(f"{_INDENT}{part}", width)]
    return lines


def hit_text(hit: Mapping[str, Any]) -> str:
    """Return the whole text of a hit; of a session the part that answers comes first."""
    passage, text = hit["passage"], hit["content"]
    return text if not passage or one_line(passage) in one_line(text) else f"{passage} … {text}"


def origins(hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each hit when and by whom it was said and, where they are of several, the project and conversation.

    >>> said = {"at": "2026-03-01T10:15:00.000000Z", "speaker": "agent", "project": "/src/app", "conversation": "c7"}
    >>> origins([said]), origins([said, said | {"conversation": "c8"}])
    (['2026-03-01 agent app c7'], ['2026-03-01 agent c7', '2026-03-01 agent c8'])
    >>> origins([said | {"entry": {"metadata": {"count": 3}}}])
    ['2026-03-01 agent app c7 (3 times)']
    """
    parts = []
    for hit in hits:
        metadata = (hit.get("entry") or {}).get("metadata") or {}
        project = str(hit.get("project") or "").rstrip("/").rpartition("/")[2]
        pointer = metadata.get("pointer")
        pointer = pointer if isinstance(pointer, dict) else {}
        file, host = pointer.get("file"), pointer.get("host", "")
        title = cut_to(
            one_line(str(hit.get("title") or file or hit.get("conversation") or "")), TITLE_COLUMNS
        )
        again = len({repeat["conversation"] for repeat in hit.get("repeats") or ()})
        times = metadata.get("count", 1)
        also = f"({times} times)" if times != 1 else ""
        also += "(removed)" if (hit.get("archived") or {}).get("why") == "removed" else ""
        also += f"{' ' if also else ''}(and in {pluralize(again, 'other conversations')})" if again else ""
        also += f"{' ' if also else ''}({ended})" if (ended := end_words(hit.get("ended"))) else ""
        speaker = hit.get("speaker") or metadata.get("corrected_by") or metadata.get("evidence")
        if isinstance(speaker, list):  # the statements that a pattern was learned from, one of each session
            speaker = f"learned in {pluralize(len(speaker), 'sessions')}"
        by = f"{speaker} ({host})" if host else speaker
        parts.append((hit["at"][:10], by, project, title, also))
    is_shown = [
        nth in (0, 1, 4) or len(parts) == 1 or len({entry[nth] for entry in parts}) > 1 for nth in range(5)
    ]
    return [
        (f"{WEAK_MATCH} " if hit.get("weak") else "")
        + " ".join(str(part) for part, says in zip(entry, is_shown, strict=True) if says and part)
        for hit, entry in zip(hits, parts, strict=True)
    ]


def hit_page(hit: Mapping[str, Any]) -> list[str]:
    """Return one hit of any layer, whole."""
    # The words of a conversation have a type of their own, and are no item that anybody added.
    if hit["layer"] in ("working_memory", "archive") and hit["entry"].get("token_count"):
        return item_lines(hit["entry"], layer=hit["layer"])
    return [*_hit_facts(hit), "", plain(hit["content"])]


def _hit_facts(hit: Mapping[str, Any]) -> list[str]:
    rows = [
        ("id", hit["id"]), ("layer", LAYER_NAMES[hit["layer"]]), ("type", hit["type"]),
        ("added", when(hit["at"] or "")), ("phase", hit["phase"]),
    ]  # fmt: skip
    return facts([(name, "—" if value in (None, "") else value) for name, value in rows], indent=0)


def session_page(hit: Mapping[str, Any], sections: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the session that a hit is, whole, under the headings of its `sections`."""
    page = _hit_facts(hit)
    for heading, texts in sections.items():
        page += ["", f"{heading}:", *(f"- {plain(text)}".replace("\n", "\n  ") for text in texts)]
    return page


def ingested_lines(done: Any) -> list[str]:
    """Return the result of a compression as lines."""
    session = done.session
    if not done.stored:
        return [f"Session {session['session_id']} was stored before; nothing changed."]
    lines = [
        f"Phase {session['phase']} compression complete:",
        *facts(
            [
                ("Session", session["session_id"]), ("Items compressed", done.items),
                ("Original tokens", session["original_tokens"]),
                ("Compressed tokens", session["compressed_tokens"]),
                ("Ratio", f"{session['compression_ratio']:.2f}x"), ("New patterns", len(done.patterns)),
            ]
        ),
    ]  # fmt: skip
    if session["compressed_tokens"] >= session["original_tokens"]:
        lines.append(
            "  There was too little to compress: the session is no smaller than its items. "
            f"{undo_words(done.revision, 'takes it back')}"
        )
    if done.carried:
        lines.append(f"  Carried over word for word, because the architect left it out: {len(done.carried)}")
        lines += [f"    {one_line(entry['content'])}" for entry in done.carried]
    if done.dropped:
        counts = ", ".join(f"{field} {number}" for field, number in done.dropped.items())
        lines.append(f"  Dropped, because no item proves it: {counts}")
    if done.evicted:
        lines.append(f"  Sessions moved to the archive: {', '.join(done.evicted)}")
    lines += [f"  {line}" for line in contradiction_lines(done.contradictions)]
    return lines + [f"  Note: {plain(note)}" for note in done.notes]


def contradiction_lines(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return statements that contradict each other, a pair per line."""
    return [f"Contradiction: {one_line(pair['pattern'])} ↔ {one_line(pair['other'])}" for pair in pairs]


memory_command.add_command(forget)
