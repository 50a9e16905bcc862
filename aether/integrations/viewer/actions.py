"""Actions: the changes that a form asks for, each one function of `api`, and the page of a conflict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from aether.api import admin, patterns
from aether.api.forget import forget as forget_entries
from aether.api.forget import supersede
from aether.api.review import Answer, settle
from aether.api.working import update_working_memory_item
from aether.errors import InvalidInput
from aether.integrations.viewer.frame import BY, Action, Frame, Shown, Stale, live_entry, plural, visible
from aether.memory.items import items_of
from aether.store.snapshot import load

NEXT_SESSION = "No session gets this any more."


def forget(frame: Frame, form: Mapping[str, str]) -> str:
    """Forget an entry, with all that repeats its text."""
    done = forget_entries([form["entry"]], home=frame.home)
    return f"{plural(len(done.targets), 'entries')} forgotten. {NEXT_SESSION}"


def forget_text(frame: Frame, form: Mapping[str, str]) -> str:
    """Forget every entry, and every statement of a session, that repeats a text."""
    done = forget_entries(match=form.get("text", ""), repeated=True, home=frame.home)
    return f"{plural(len(done.targets), 'entries')} with this text forgotten. {NEXT_SESSION}"


def correct(frame: Frame, form: Mapping[str, str]) -> str:
    """Change the text and the type of an item; an entry of another layer is superseded by a new item."""
    old, text = form["entry"], form.get("text", "")
    if not text.strip():
        raise InvalidInput("the text is empty.", fix="Write what is right, or forget the entry.", where=BY)
    before = _text_of(frame, old)
    if text == visible(before).replace("\r\n", "\n"):
        text = before  # what cannot be shown was not typed away
    given: dict[str, Any] = {"content": text} | ({"type": form["type"]} if form.get("type") else {})
    if "relevance" in form:
        given["relevance_score"] = _share(form["relevance"])
    if _is_item(frame, old):
        update_working_memory_item(old, given, home=frame.home)
        return "Corrected. The next session gets the new text."
    given.pop("relevance_score", None)
    made = supersede(old, given, home=frame.home)
    return f"Corrected: {made.item['id']} takes the place of {old}."


def _text_of(frame: Frame, id: str) -> str:
    found = live_entry(load(frame.home).documents, id) or {}
    return str(found.get("content") or found.get("pattern") or "")


def protect(frame: Frame, form: Mapping[str, str]) -> str:
    """Protect an item from every shortening, or end that."""
    on = form.get("on") == "1"
    update_working_memory_item(form["entry"], {"metadata": {"protected": on or None}}, home=frame.home)
    return "Protected: no step may change or drop it." if on else "It is protected no longer."


def link(frame: Frame, form: Mapping[str, str]) -> str:
    """Link an entry to another."""
    target = form.get("target", "").strip()
    patterns.create_associative_link(form["entry"], target, form.get("type", ""), home=frame.home)
    return f"Linked to {target}."


def promote(frame: Frame, form: Mapping[str, str]) -> str:
    """Make a pattern of an item, or of a statement of a session."""
    if _is_item(frame, form["entry"]):
        done = patterns.promote_item(form["entry"], home=frame.home)
        made, known = "Promoted to long-term memory as", "Long-term memory has it already; linked with"
        return f"{made if done.created else known} {(done.created or done.supported)[0]}."
    kind = cast("Any", form.get("type") or None)
    made = patterns.extract_pattern_to_long_term(
        form.get("text", ""), session_id=form["entry"], type=kind, home=frame.home
    )
    return f"Promoted to long-term memory as {made}."


def promote_repeated(frame: Frame, form: Mapping[str, str]) -> str:  # noqa: ARG001 - every action has the same parameters
    """Promote what repeats, and what matters much."""
    done = patterns.promote(home=frame.home)
    return f"{plural(len(done.created), 'new patterns')}, {number_of(done.supported)} with more evidence."


def number_of(held: Any) -> str:
    """Return how many there are."""
    return f"{len(held):,}"


def answer(frame: Frame, form: Mapping[str, str]) -> str:
    """Settle a doubt: keep everything, correct its first entry, or forget one."""
    given = cast("Answer", form.get("answer", ""))
    done = settle(
        form.get("doubt", ""), given, form.get("text", ""), newer=bool(form.get("newer")), home=frame.home
    )
    return {
        "keep": "Kept. It is not raised again, unless the text changes.",
        "forget": f"Forgotten. {NEXT_SESSION}",
        "correct": "Corrected.",
    }[done.answer]


def undo(frame: Frame, form: Mapping[str, str]) -> str:
    """Undo one revision."""
    line = admin.undo(_revision(form), home=frame.home)
    return f"Revision {line.revision} ({line.operation}) is undone."


def repair(frame: Frame, form: Mapping[str, str]) -> str:  # noqa: ARG001 - every action has the same parameters
    """Repair the home as far as possible."""
    done = admin.repair(home=frame.home)
    return " ".join(done) or "Nothing had to be repaired."


def accept(frame: Frame, form: Mapping[str, str]) -> str:
    """Accept a hand edit that waits in quarantine."""
    done = admin.accept_edit(form.get("edit", ""), home=frame.home)
    return f"Accepted: {', '.join(done) or 'nothing differed'}."


def _is_item(frame: Frame, id: str) -> bool:
    return any(item["id"] == id for item in items_of(load(frame.home).documents["memory"]))


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is no relevance.", fix="Use a number from 0 to 1.", where=BY) from None


def _revision(form: Mapping[str, str]) -> int:
    text = form.get("revision", "")
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"{text!r} is no revision.", fix="Choose one of the log.", where=BY)
    return int(text)


def conflict(frame: Frame, reason: Stale, form: Mapping[str, Any]) -> Shown:
    """Return the page of an entry that was changed meanwhile: both versions, and the form again."""
    entry = live_entry(load(frame.home).documents, reason.entry)
    own = {"csrf", "once", "back", "state", "entry", "other", "other_state", "action"}
    given = {name: value for name, value in form.items() if name not in own}
    values = {
        "error": reason,
        "entry": entry,
        "id": reason.entry,
        "action": form["action"],
        "form": form,
        "given": given,
        # A doubt is about the texts that were shown: about others it is raised again, or not at all.
        "again": form["action"] != "review",
    }
    return Shown("conflict.html", values, "Changed meanwhile", 409)


ACTIONS = [
    Action("forget", forget), Action("forget-text", forget_text), Action("correct", correct),
    Action("protect", protect), Action("link", link), Action("promote", promote),
    Action("promote-repeated", promote_repeated), Action("review", answer), Action("undo", undo),
    Action("repair", repair), Action("accept", accept),
]  # fmt: skip
