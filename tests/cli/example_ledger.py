"""The server of the examples of `aether share`: whatever its address, a directory below the working directory."""

from __future__ import annotations

import json
from pathlib import Path

from tests import directory_ledger
from tests.directory_ledger import DirectoryLedger

# Of no colony, so that it is beside them.
RIGHTS = "rights.json"


def open_ledger(url: str, colony: str, *, replica: str, timeout: float) -> DirectoryLedger:
    return directory_ledger.open_ledger(_place(), colony, replica=replica, timeout=timeout)


def create_colony(url: str, colony: str, *, timeout: float) -> DirectoryLedger:
    return directory_ledger.create_colony(_place(), colony, timeout=timeout)


def status(url: str, colony: str, *, timeout: float = 10) -> dict[str, object]:
    return directory_ledger.status(_place(), colony, timeout=timeout)


def members(url: str, colony: str, *, timeout: float = 10) -> list[object]:
    from aether.sharing.postgres import Member

    return [Member(role, right, 0, "") for role, right in {"owner": "admin", **_rights()}.items()]


def grant(url: str, colony: str, role: str, right: str, *, timeout: float = 10) -> None:
    Path("server", RIGHTS).write_text(json.dumps({**_rights(), role: right}), encoding="utf-8")


def revoke(url: str, colony: str, role: str, *, timeout: float = 10) -> None:
    rights = _rights()
    del rights[role]
    Path("server", RIGHTS).write_text(json.dumps(rights), encoding="utf-8")


def _place() -> str:
    return f"{directory_ledger.START}{Path('server').absolute()}"


def _rights() -> dict[str, str]:
    path = Path("server", RIGHTS)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
