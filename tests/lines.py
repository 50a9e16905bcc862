"""Lines of the ledger of a shared colony, as a server takes them."""

from __future__ import annotations

from typing import Any

from aether.store import log

AT = "2026-03-01T10:15:00.000000Z"


def line(number: int, ledger: Any, words: str = "x", /, **fields: Any) -> bytes:
    """Return a line of the journal that the member of `ledger` may append; a field of None is left out."""
    usual = {"revision": number, "at": AT, "by": "x", "operation": words, "member": ledger.member}
    member = fields.pop("member", usual.pop("member"))
    return log.seal_json(
        {name: value for name, value in (usual | fields | {"member": member}).items() if value is not None}
    )
