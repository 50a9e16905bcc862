"""Actions: the changes that a form asks for, each one function of `api`, and the page of a conflict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aether.api import admin
from aether.api.forget import forget as forget_entries
from aether.errors import InvalidInput
from aether.integrations.viewer.frame import BY, Action, Frame, Shown, Stale, digest, live_entry, plural
from aether.store.snapshot import load


def forget(frame: Frame, form: Mapping[str, str]) -> str:
    """Forget an entry, with all that repeats its text."""
    done = forget_entries([form["entry"]], home=frame.home)
    return f"{plural(len(done.targets), 'entries')} forgotten. No session gets this any more."


def undo(frame: Frame, form: Mapping[str, str]) -> str:
    """Undo one revision."""
    line = admin.undo(_revision(form), home=frame.home)
    return f"Revision {line.revision} ({line.operation}) is undone."


def _revision(form: Mapping[str, str]) -> int:
    text = form.get("revision", "")
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"{text!r} is no revision.", fix="Choose one of the log.", where=BY)
    return int(text)


def conflict(frame: Frame, reason: Stale, form: Mapping[str, Any]) -> Shown:
    """Return the page of an entry that was changed meanwhile: both versions, and the form again."""
    entry = live_entry(load(frame.home).documents, reason.entry)
    return Shown("conflict.html", {"error": reason, "entry": entry, "state": digest(entry), "form": form})


ACTIONS = [Action("forget", forget), Action("undo", undo)]
