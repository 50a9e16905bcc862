"""Findings: the words that checks, repairs and conversions of all providers share.

A check yields errors, which the provider answers with a 400, and warnings, which some of its models or servers that
speak its protocol refuse. A repair notes as a warning each content that it dropped, as an info each change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from aether.errors import shown
from aether.types import Finding, JsonObject

# Names that other programs use for the roles.
_ROLE_NAMES = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}


class RepairedRaws(NamedTuple):
    """Messages as a provider accepts them, and the findings that name each change and its place before."""

    raws: list[JsonObject]
    findings: list[Finding]
    places: list[int]
    """Of each message, the position of the given one that it is, was made of, or follows."""


def error(code: str, where: str, message: str, fix: str) -> Finding:
    """Return the finding of what a provider refuses."""
    return Finding("error", code, where, message, fix)


def warning(code: str, where: str, message: str, fix: str) -> Finding:
    """Return the finding of what some models or servers refuse."""
    return Finding("warning", code, where, message, fix)


def lost(code: str, where: str, message: str) -> Finding:
    """Return the note that content was dropped."""
    return warning(code, where, message, "Look into the original if it matters.")


def changed(code: str, where: str, message: str) -> Finding:
    """Return the note that something was moved, renamed or rewritten."""
    return Finding("info", code, where, message, "Nothing has to be done.")


def unknown_fields(raw: JsonObject, known: Collection[str], where: str) -> Iterator[Finding]:
    """Yield the error of a message with fields that are not in `known`."""
    if unknown := sorted(map(str, raw.keys() - set(known))):
        yield error("unknown-field", where, f"Unknown: {', '.join(unknown)}.", "Leave it out.")


def bad_role(role: Any, where: str, fix: str) -> Finding:
    """Return the error of a role that the provider does not know."""
    return error("bad-role", where, f"{shown(role)} is not a role.", fix)


def wrong_role(kind: str, where: str, role: Any, fix: str = "Move or drop it.") -> Finding:
    """Return the error of content that a message of `role` cannot hold."""
    return error("wrong-role", where, f"A message of role {role} cannot hold {kind}.", fix)


def unknown_type(kind: str, where: str) -> Finding:
    """Return the error of a type that the provider does not know."""
    return error(
        "unknown-block", where, f"{shown(kind)} is not a known type.", "Write it as text, or drop it."
    )


def bad_media(fault: str, where: str) -> Finding:
    """Return the error of media that the provider refuses."""
    return error("bad-media", where, fault, "Give a source with its type and data, or drop it.")


def dropped_media(fault: str, where: str) -> Finding:
    """Return the note that media were dropped because the provider refuses them."""
    return lost("bad-media", where, f"Dropped media. {fault}")


def dropped_unknown(kind: str, where: str) -> Finding:
    """Return the note that a block of a type that the provider does not know was dropped."""
    return lost("unknown-block", where, f"Dropped a block of the unknown type {shown(kind)}.")


def as_other_type(kind: str, made: str, where: str) -> Finding:
    """Return the note that a block of a type that the provider does not know, or refuses so, was rewritten."""
    return changed("unknown-block", where, f"The {kind} became {made}.")


def bad_content(value: Any, where: str, fix: str) -> Finding:
    """Return the error of content that is neither text nor a list."""
    return error("empty-content", where, f"Content is {shown(value)}.", fix)


def untyped(value: Any, where: str) -> Finding:
    """Return the error of a block without a type."""
    return error("bad-block", where, f"{shown(value)} has no type.", "Give it a type.")


def bad_text(value: Any, where: str) -> Finding:
    """Return the error of a text that is something else."""
    return error("bad-block", where, f"The text is {shown(value)}.", "Give text.")


def bad_id(key: Any, where: str, fix: str) -> Finding:
    """Return the error of a call or result without a usable id."""
    return error("bad-id", where, f"{shown(key)} is not the id of a call.", fix)


def bad_name(name: Any, where: str, fix: str = "Use letters, digits, _ and -.") -> Finding:
    """Return the error of a tool name that the provider does not accept."""
    return error("bad-name", where, f"{shown(name)} is not the name of a tool.", fix)


def orphan_result(key: str, where: str) -> Finding:
    """Return the error of a result without its call."""
    return error("orphan-result", where, f"There is no call {shown(key)}.", "Drop it.")


def repeated_result(key: str, where: str) -> Finding:
    """Return the error of a second result of one call."""
    return error("repeated-result", where, f"The call {shown(key)} has a result already.", "Drop one.")


def without_result(call: str, where: str, *, waiting: bool) -> Finding:
    """Return the finding of a call without a result: a warning if it may be `waiting` for it at the end."""
    if waiting:
        what = f"{call} waits for its result."
        return warning("dangling-call", where, what, "Run it, and append the result.")
    return error("missing-result", where, f"{call} has no result in its place.", "Answer or drop it.")


def dropped_orphan(key: str, where: str) -> Finding:
    """Return the note that a result without its call was dropped."""
    return lost("orphan-result", where, f"Dropped a result: no call {key} waits for it.")


def dropped_call(call: str, where: str) -> Finding:
    """Return the note that a call without a result was dropped."""
    return lost("missing-result", where, f"Dropped the call {call}, which was never answered.")


def dropped_content(kind: str, where: str, role: str) -> Finding:
    """Return the note that content was dropped because a message of `role` cannot hold it."""
    return lost("wrong-role", where, f"Dropped a {kind}: a message of role {role} cannot hold it.")


def new_role(raw: JsonObject, role: str, where: str) -> Iterator[Finding]:
    """Yield the note that the role of a message changed, if it did."""
    if role != raw.get("role"):
        yield changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}.")


def known_role(role: Any, roles: Collection[str]) -> str:
    """Return the role of `roles` that `role` names; the user for any other.

    >>> known_role("model", {"user", "assistant"}), known_role(7, {"user", "assistant"})
    ('assistant', 'user')
    """
    if isinstance(role, str) and role in roles:
        return role
    meant = _ROLE_NAMES.get(role, "user") if isinstance(role, str) else "user"
    return meant if meant in roles else "user"


def unused_name(name: str, used: Collection[str], *, most: int) -> str:
    """Return `name`, with a number at its end if it is used already or longer than `most` characters.

    >>> unused_name("call_1", {"call_1"}, most=40)
    'call_1_2'
    """
    found, number = name[:most], 1
    while found in used:
        number += 1
        found = f"{name[: most - len(str(number)) - 1]}_{number}"
    return found
