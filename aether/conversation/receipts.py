"""Receipts: the one record of a step that replaced messages, whoever asked for it: a compaction, a compression, an ageing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from aether.conversation.shapes import Policy, Receipt
from aether.types import JsonObject


def step_receipt(
    conversation_id: str, *, at: str, before: Sequence[bytes], after: Sequence[bytes], places: Sequence[int | None],
    tokens_before: int, tokens_after: int, counter: str, policy: JsonObject, effective: JsonObject, trigger: str,
    protected: Iterable[int], **more: Any,
) -> Receipt:  # fmt: skip
    """Return the receipt of a step, given the texts of the messages before and after it; its number is not known yet.

    `more` are further fields of `Receipt`.
    """
    empty: JsonObject = {"note": "", "kept": {}, "cuts": [], "steps": [], "summary": {}, "findings": []}
    return Receipt(
        conversation_id=conversation_id, step=0, at=at, policy=policy, effective=effective, trigger=trigger,
        tokens_before=tokens_before, tokens_after=tokens_after, counter=counter, messages_before=len(before),
        messages_after=len(after), removed=sorted({*range(len(before))} - {*places}), places=list(places),
        protected=sorted(protected), sha256_before=checksum(before), sha256_after=checksum(after), **{**empty, **more},
    )  # fmt: skip


def checksum(texts: Iterable[bytes]) -> str:
    """Return the SHA-256 of messages as the log writes them, one per line."""
    return hashlib.sha256(b"\n".join(texts)).hexdigest()


def policy_json(policy: Policy) -> JsonObject:
    """Return a policy as JSON."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in policy._asdict().items()
    }
