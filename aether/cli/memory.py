"""Memory on the command line: every step of the loop by hand, and the loop as one command."""

from __future__ import annotations

import json
from typing import Any

import click

from aether.cli import memory_forget, memory_loop
from aether.cli.memory_views import hit_lines, hit_page, item_lines, items_table, status_lines, verify_lines
from aether.cli.output import Ask, Group, confirmed, emit, note, pass_ask, plain, read_text, say

LAYERS = ("working_memory", "short_term_memory", "long_term_memory", "archive")


@click.group("memory", cls=Group)
def memory_command() -> None:
    """Add, search, compress and promote memory.

    \b
    Example:
      aether memory status
    """


@memory_command.command("add")
@click.argument("text")
@click.option(
    "--type", "type_", default="observation", show_default=True, help="A word for what kind of thing it is"
)
@click.option("--relevance", default=0.5, show_default=True, type=float, help="How much it matters, 0 to 1")
@click.option("--source", default="queen", show_default=True, help="Who it comes from")
@click.option("--caste", help="The caste of the worker it comes from")
@click.option("--phase", type=click.IntRange(0), help="The phase of the colony's work it belongs to")
@click.option("--protect", is_flag=True, help="Never evict it, and keep it word for word")
@click.option("--metadata", help="More about it, as a JSON object")
@pass_ask
def add(
    ask: Ask,
    *,
    text: str,
    type_: str,
    relevance: float,
    source: str,
    caste: str | None,
    phase: int | None,
    protect: bool,
    metadata: str | None,
) -> None:
    """Store one item and print its id.

    TEXT is the content, or - for standard input.

    \b
    Example:
      aether memory add "Use atomic writes for state" --type decision --relevance 0.9
    """
    from aether.operations import working

    extra: dict[str, Any] = _object(metadata, "--metadata") if metadata else {}
    extra |= {
        name: value for name, value in (("phase", phase), ("protected", protect or None)) if value is not None
    }
    content = read_text("-") if text == "-" else text
    added = working.add_working_memory_item(
        content, type_, relevance, source=source, caste=caste, metadata=extra, home=ask.place()
    )
    _tell_threshold(ask, added)
    data = {
        "id": str(added),
        "compression_needed": added.compression_needed,
        "evicted": added.evicted,
        "handoff": added.handoff,
    }
    emit(ask, data, str(added))


def _tell_threshold(ask: Ask, added: Any) -> None:
    if added.evicted:
        say(f"Working memory was full: {len(added.evicted)} item(s) moved to the archive.")
    if added.compression_needed:
        note(ask, f"Compression is needed: aether memory compress --phase N. {_handed_off(added.handoff)}")


def _handed_off(path: str) -> str:
    return f"The hand-off is {path}." if path else 'No hand-off could be written; "aether doctor" says why.'


def _object(text: str, where: str) -> dict[str, Any]:
    from aether.errors import InvalidInput

    try:
        value = json.loads(text)
    except ValueError as reason:
        raise InvalidInput(
            f"not JSON ({reason}).", fix='Pass an object such as {"ticket": 7}.', where=where
        ) from reason
    if not isinstance(value, dict):
        raise InvalidInput("not a JSON object.", fix='Pass an object such as {"ticket": 7}.', where=where)
    return value


@memory_command.command("get")
@click.argument("item_id", metavar="ID")
@pass_ask
def get(ask: Ask, item_id: str) -> None:
    """Print one item, session or pattern by its id.

    Looks in working memory, where it counts the access, then in the other layers and the archive.

    \b
    Example:
      aether memory get "$ITEM"
    """
    from aether.errors import NotFound
    from aether.operations import searching, working

    place = ask.place()
    try:
        item = working.get_working_memory_item(item_id, home=place)
    except NotFound:
        hit = searching.find_by_id(item_id, home=place)
        emit(ask, hit["entry"], hit_page(hit))
    else:
        emit(ask, item, item_lines(item))


@memory_command.command("update")
@click.argument("item_id")
@click.option("--content", help="The new text, or - for standard input")
@click.option("--type", "type_", help="The new type")
@click.option("--relevance", type=float, help="The new relevance, 0 to 1")
@click.option("--protect/--unprotect", "protected", default=None, help="Protect it, or no longer")
@click.option("--metadata", help="Metadata to merge in, as a JSON object; a null removes its key")
@pass_ask
def update(
    ask: Ask,
    *,
    item_id: str,
    content: str | None,
    type_: str | None,
    relevance: float | None,
    protected: bool | None,
    metadata: str | None,
) -> None:
    """Change one item; its tokens are counted anew.

    What was archived or became a pattern is corrected with --content: a new item says what is right, and all that
    said it before is forgotten, in one change that aether undo takes back.

    \b
    Example:
      aether memory update "$ITEM" --relevance 0.95
    """
    from aether.errors import NotFound
    from aether.operations import correcting, working

    given = {
        "content": read_text("-") if content == "-" else content,
        "type": type_,
        "relevance_score": relevance,
    }
    updates: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    extra = _object(metadata, "--metadata") if metadata else {}
    if protected is not None:
        extra["protected"] = protected or None
    if extra:
        updates["metadata"] = extra
    place = ask.place()
    try:
        item = working.update_working_memory_item(item_id, updates, home=place)
    except NotFound:
        done = correcting.correct(item_id, updates, home=place)
        emit(ask, done.item, item_lines(done.item))
        note(
            ask,
            f"A new item in place of {plain(item_id)}; {len(done.forgotten)} thing(s) that said it before are forgotten. "
            f"aether undo {done.revision} takes it back.",
        )
    else:
        emit(ask, item, item_lines(item))


@memory_command.command("list")
@click.option(
    "--limit", default=0, show_default=True, type=click.IntRange(0), help="Most items to list; 0 for all"
)
@pass_ask
def list_(ask: Ask, limit: int) -> None:
    """List the items of working memory, most recently used first.

    \b
    Example:
      aether memory list --limit 10
    """
    from aether.operations import working

    items = working.list_working_memory_items(limit, home=ask.place())
    emit(ask, items, items_table(items))
    if not items:
        note(ask, "Working memory is empty.")


@memory_command.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def clear(ask: Ask, yes: bool) -> int:
    """Move every item of working memory to the archive.

    \b
    Example:
      aether memory clear --yes
    """
    from aether.operations import working

    place = ask.place()
    number = len(working.list_working_memory_items(home=place))
    if not confirmed(f"{number} item(s) will move to the archive.", yes=yes):
        emit(ask, {"archived": 0}, [])
        return 1
    cleared = working.clear_working_memory(home=place)
    emit(ask, {"archived": cleared}, f"{cleared} item(s) moved to the archive. aether undo brings them back.")
    return 0


@memory_command.command("search")
@click.argument("query")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Most hits")
@click.option(
    "--layer", "layers", multiple=True, type=click.Choice(LAYERS), help="Only this layer; may be repeated"
)
@click.option("--type", "types", multiple=True, help="Only this type; may be repeated")
@click.option("--phase", type=click.IntRange(0), help="Only this phase")
@click.option("--caste", help="Only this caste")
@click.option("--since", help="Not older than this ISO 8601 time")
@click.option("--until", help="Not newer than this ISO 8601 time")
@click.option(
    "--by-layer", is_flag=True, help="Working memory first, then short-term, then long-term; LIMIT each"
)
@pass_ask
def search(ask: Ask, /, query: str, **options: Any) -> None:
    """Search all three layers and the archive.

    \b
    Example:
      aether memory search "atomic writes" --limit 5
    """
    from aether.operations import searching

    found = searching.search_memory(
        query, home=ask.place(), **{name: value for name, value in options.items() if value}
    )
    emit(ask, found, hit_lines(found))
    if not found:
        note(ask, "Nothing found.")


@memory_command.command("status")
@pass_ask
def status(ask: Ask) -> None:
    """Show how full the layers are.

    \b
    Example:
      aether memory status
    """
    from aether.operations.status import get_memory_status

    found = get_memory_status(home=ask.place())
    emit(ask, found, status_lines(found))
    if found["working_memory"]["compression_needed"]:
        note(ask, "Compression is needed: aether memory compress --phase N")


@memory_command.command("verify")
@pass_ask
def verify(ask: Ask) -> int:
    """Check working memory against its token limits.

    Exits 1 where it is over its capacity; over the threshold is a warning.

    \b
    Example:
      aether memory verify
    """
    from aether.operations.working import verify_token_limit

    usage = verify_token_limit(home=ask.place())
    verdict = (
        "FAIL" if usage.current > usage.maximum else "WARNING" if usage.current > usage.threshold else "PASS"
    )
    data = {**usage._asdict(), "percent": usage.percent, "status": verdict}
    emit(ask, data, verify_lines(usage, verdict))
    return int(verdict == "FAIL")


for verb in (
    memory_loop.prepare,
    memory_loop.ingest,
    memory_loop.compress,
    memory_loop.promote,
    memory_loop.stats,
    memory_loop.link,
    memory_forget.forget,
):
    memory_command.add_command(verb)
