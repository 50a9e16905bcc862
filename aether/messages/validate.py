"""Validation: whether a provider would accept a conversation, every reason why not, and a repair.

A finding of level `error` is what the provider answers with a 400; a `warning` is what some of its models, or servers of
its protocol, refuse. Codes are stable words. Calls of the last response, followed at most by some of their results,
are `dangling-call`, a warning: sending them is an error, but the caller is about to run them.

After a repair `check` finds no error, unless nothing is left at all. Nothing is invented. Text of users and of the
assistant is never lost; results go back to their calls; results without a call, calls that were never answered and
blocks that cannot be sent are dropped, each with a warning. A second repair changes nothing, and valid messages are
returned as they are. The rules of each provider are in its module below `aether.messages.providers`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.content import MAX_LEVELS, encodable
from aether.messages.convert import META, bare, new_message, provider, read, worded
from aether.messages.findings import RepairedRaws, bad_name, changed, error
from aether.messages.model import Message, ProviderFormat
from aether.messages.providers import anthropic, gemini, openai
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

_POSITION = lazy(r"(\w+\[)(\d+)\]")
# Gemini accepts dots and colons too; Anthropic longer names.
_TOOL_NAMES = {
    "anthropic": anthropic.NAME, "openai": openai.NAME, "responses": openai.NAME, "gemini": gemini.NAME,
}  # fmt: skip
_LISTS = {"responses": "input", "gemini": "contents"}
_NO_JSON = f"half a character, a number that is not finite, or more than {MAX_LEVELS} levels"


class Repaired(NamedTuple):
    """Messages that a provider accepts, and the changes made; each `where` is the place before the repair."""

    messages: list[Message]
    findings: list[Finding]


def check(
    messages: Sequence[Message], format: ProviderFormat, *, system: Any = None, tools: Any = None
) -> list[Finding]:
    """Return every violation of the provider's rules; messages are judged as they would be sent, by `raw`.

    >>> from aether.messages.model import Message
    >>> raw = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> [(found.code, found.where) for found in check([Message("tool", (), raw, "openai")], "openai")]
    [('orphan-result', 'messages[0]')]
    """
    found: list[Finding] = []
    for at, block in enumerate(system if format == "anthropic" and isinstance(system, list) else []):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str) or not text.strip():
            found.append(error("empty-content", f"system[{at}]", "The text is blank.", "Drop the block."))
    seen: set[str] = set()
    for where, name in _tool_names(tools, format):
        if format in _TOOL_NAMES and not _TOOL_NAMES[format].fullmatch(name):
            found.append(bad_name(name, where, *([gemini.NAME_FIX] if format == "gemini" else [])))
        if name in seen:
            what = f"Another tool is called {shown(name)}."
            found.append(error("repeated-tool", where, what, "Drop or rename one."))
        seen.add(name)
    given = [message.raw for message in messages]
    raws = list(map(encodable, given))
    for at, raw in enumerate(raws):
        if raw is not given[at]:
            fix = "Repair it before it becomes JSON."
            found.append(error("not-json", _where(at, format), f"It holds {_NO_JSON}.", fix))
    found += provider(format).findings(raws)
    if not messages:
        found.append(error("no-messages", "messages", "There are no messages.", "Send at least one."))
    return found


def has_errors(found: Iterable[Finding]) -> bool:
    """Return whether one of the findings is an error."""
    return any(finding.level == "error" for finding in found)


def _where(at: int, format: ProviderFormat) -> str:
    return f"{_LISTS.get(format, 'messages')}[{at}]"


def _rewritten(raws: Sequence[JsonObject], format: ProviderFormat) -> tuple[list[JsonObject], list[Finding]]:
    """Return `raws` as JSON that every parser reads, and a note for each that changed."""
    made = list(map(encodable, raws))
    what = f"Rewrote what JSON cannot hold: {_NO_JSON}."
    return made, [
        changed("not-json", _where(at, format), what) for at, raw in enumerate(made) if raw is not raws[at]
    ]


def is_sendable(
    raws: Sequence[JsonObject], format: ProviderFormat, *, known: int = 0, plain: Container[int] = ()
) -> bool:
    """Return whether the provider accepts `raws`, without their `meta`.

    The first `known` of them were accepted as a conversation of their own: what is in them is not looked at again, only
    how they go together with the others. `plain` has the identities of those that are known to be plain JSON.
    """
    sent = list(map(bare, raws))
    known = max(0, known - 1)  # the last message of a conversation may be what others may not
    if not all(
        id(raw) in plain or encodable(one) is one for raw, one in zip(raws[known:], sent[known:], strict=True)
    ):
        return False
    return not has_errors(provider(format).findings(sent, known))


def sendable(
    raws: Sequence[JsonObject], format: ProviderFormat, *, keep: Collection[int] = ()
) -> RepairedRaws:
    r"""Return `raws` as the provider accepts them; without an error of `check` all stay as they are.

    What a repair drops of the messages at the positions `keep` comes back as text, in a message of the user.

    >>> orphan = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> [raw["content"] for raw in sendable([{"role": "user", "content": "Go."}, orphan], "openai", keep=[1]).raws]
    ['Go.', 'Result of a tool:\nok']
    """
    module, bared = provider(format), list(map(bare, raws))
    places = list(range(len(bared)))
    if is_sendable(raws, format):
        return RepairedRaws(list(raws), [], places)
    clean, rewritten = _rewritten(bared, format)
    given = {id(one): raw for one, old, raw in zip(clean, bared, raws, strict=True) if one is old}
    sent = clean
    saved: list[Finding] = []
    left = set(keep)
    while True:
        done = module.repaired(sent)
        dropped = {
            at: places[at] for found in done.findings if found.level == "warning" for at in _place(found)
        }
        texts = {at: _texts(clean[of], done, places, of, format) for at, of in dropped.items() if of in left}
        if not any(texts.values()):
            break
        left.difference_update(dropped.values())
        rows = list(zip(sent, places, strict=True))
        for at in sorted(texts, reverse=True):
            found = (new_message("user", text, format).raw for text in texts[at])
            rows[at + 1 : at + 1] = [(raw, places[at]) for raw in found]
            what = "Its text is protected, and became a message of the user."
            saved.append(changed("kept-text", f"messages[{places[at]}]", what))
        sent, places = [raw for raw, _ in rows], [place for _, place in rows]
    origins = [places[at] for at in done.places]
    made = [
        given[id(one)] if id(one) in given else _marked(one, raws[at])
        for one, at in zip(done.raws, origins, strict=True)
    ]
    findings = [*rewritten, *(_moved(found, places) for found in done.findings), *saved[::-1]]
    return RepairedRaws(made, findings, origins)


def _place(found: Finding) -> list[int]:
    """Return the position that a finding of a repair names, if it names one."""
    named = _POSITION.match(found.where)
    return [int(named[2])] if named else []


def _moved(found: Finding, places: Sequence[int]) -> Finding:
    """Return a finding about the position before messages were inserted."""
    named = _POSITION.match(found.where)
    if not named:
        return found
    return found._replace(where=f"{named[1]}{places[int(named[2])]}]{found.where[named.end() :]}")


def _texts(
    raw: JsonObject, done: RepairedRaws, places: Sequence[int], place: int, format: ProviderFormat
) -> list[str]:
    """Return the texts of a message that those made of it lack, as a person would write them."""
    made = [one for one, at in zip(done.raws, done.places, strict=True) if places[at] == place]
    there = {block.text.strip() for one in made for block in provider(format).message(one).blocks}
    return [
        worded(block)
        for block in provider(format).message(raw).blocks
        if block.kind in ("result", "call", "text") and block.text.strip() and block.text.strip() not in there
    ]


def _marked(made: JsonObject, given: JsonObject) -> JsonObject:
    return {**made, META: given[META]} if META in given else made


def repair(messages: Sequence[Message], format: ProviderFormat) -> Repaired:
    """Return `messages`, all in `format`, as its provider accepts them.

    >>> orphan = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    >>> repaired = repair(read([{"role": "user", "content": "Go."}, orphan], "openai"), "openai")
    >>> [message.text for message in repaired.messages], [found.code for found in repaired.findings]
    (['Go.'], ['orphan-result'])
    """
    raws = [message.raw for message in messages]
    clean, rewritten = _rewritten(raws, format)
    repaired = provider(format).repaired(clean)
    if len(raws) == len(repaired.raws) and all(map(lambda a, b: a is b, raws, repaired.raws)):
        return Repaired(list(messages), repaired.findings)
    return Repaired(read(repaired.raws, format), [*rewritten, *repaired.findings])


def _tool_names(tools: Any, format: ProviderFormat) -> Iterator[tuple[str, str]]:
    """Yield the place and the name of each tool that has one; tools of the provider's own may have none."""
    for at, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, dict):
            continue
        if format == "gemini":
            listed = tool.get("functionDeclarations", tool.get("function_declarations"))
            found = [
                (f"tools[{at}].functionDeclarations[{number}]", one)
                for number, one in enumerate(listed if isinstance(listed, list) else [])
            ]
        else:
            found = [(f"tools[{at}]", tool.get("function", tool))]
        for where, one in found:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                yield where, one["name"]
