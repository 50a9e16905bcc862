"""How memory looks in a terminal: pure functions from results to lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aether.cli.output import short, table


def item_lines(item: Mapping[str, Any]) -> list[str]:
    """Return one item as lines."""
    metadata = item["metadata"]
    facts = [
        ("id", item["id"]), ("type", item["type"]), ("relevance", metadata["relevance_score"]),
        ("tokens", item["token_count"]), ("added", metadata["timestamp"]), ("source", metadata["source"]),
        ("caste", metadata["caste"] or "—"), ("phase", metadata.get("phase", "—")),
        ("accessed", f"{metadata['access_count']} times"),
    ]  # fmt: skip
    return [*table(facts), "", item["content"].encode("utf-8", "replace").decode()]


def hit_lines(hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return search hits as lines, best first."""
    rows = [
        (
            f"{hit['score']:.2f}",
            f"{hit['relevance']:.2f}",
            hit["layer"].replace("_memory", ""),
            hit["type"],
            hit["id"],
            short(hit["content"], 80),
        )
        for hit in hits
    ]
    return table(rows, head=("score", "rel", "layer", "type", "id", "text"), right=[0, 1]) if rows else []


def status_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the status of the three layers as lines."""
    work, short_term, long_term, metrics = (
        found[part] for part in ("working_memory", "short_term_memory", "long_term_memory", "metrics")
    )
    types = ", ".join(
        f"{name.removesuffix('_pattern')}={number}" for name, number in long_term["types"].items()
    )
    lines = [
        "Working Memory",
        f"  Items: {work['items']}",
        f"  Tokens: {work['tokens']} / {work['max_capacity_tokens']} ({work['percent']}%)",
        f"  Eviction Threshold: {work['eviction_threshold_tokens']}",
        f"  Max Capacity: {work['max_capacity_tokens']}",
        "Short-term Memory",
        f"  Sessions: {short_term['sessions']} / {short_term['max_sessions']} ({short_term['percent']}%)",
        f"  Ratio: {short_term['target_ratio']}x target",
        "Long-term Memory",
        f"  Patterns: {long_term['patterns']}",
        f"  Types: {types}",
        "Metrics",
        f"  Total compressions: {metrics['total_compressions']}",
        f"  Total pattern extractions: {metrics['total_pattern_extractions']}",
        f"  Average compression ratio: {metrics['average_compression_ratio']:.2f}x",
        f"  Working memory evictions: {metrics['working_memory_evictions']}",
        f"  Short-term evictions: {metrics['short_term_evictions']}",
    ]
    if work["compression_needed"]:
        lines.append("Compression is needed: aether memory compress --phase N")
    return lines


def verify_lines(usage: Any, verdict: str) -> list[str]:
    """Return what `memory verify` says."""
    return [
        f"Max: {usage.maximum}",
        f"Current: {usage.current} ({usage.percent}%)",
        f"Threshold: {usage.threshold}",
        f"Status: {verdict}",
    ]


def ingested_lines(done: Any) -> list[str]:
    """Return what a compression did."""
    session = done.session
    if not done.stored:
        return [f"Session {session['session_id']} was stored before; nothing changed."]
    lines = [
        f"Phase {session['phase']} compression complete:",
        f"  Session: {session['session_id']}",
        f"  Items compressed: {done.items}",
        f"  Original tokens: {session['original_tokens']}",
        f"  Compressed tokens: {session['compressed_tokens']}",
        f"  Ratio: {session['compression_ratio']:.2f}x",
        f"  New patterns: {len(done.patterns)}",
    ]
    if done.carried:
        lines.append(f"  Carried over word for word, because the architect left it out: {len(done.carried)}")
        lines += [f"    {short(entry['content'], 80)}" for entry in done.carried]
    if done.evicted:
        lines.append(f"  Sessions moved to the archive: {', '.join(done.evicted)}")
    lines += [
        f"  Contradiction: {short(pair['pattern'], 60)} ↔ {short(pair['other'], 60)}"
        for pair in done.contradictions
    ]
    return lines + [f"  Note: {note}" for note in done.notes]


def stats_lines(found: Mapping[str, Any]) -> list[str]:
    """Return what compression did so far."""
    lines = [
        f"Total compressions: {found['total_compressions']}",
        f"Average ratio: {found['average_compression_ratio']:.2f}x",
        f"Sessions: {len(found['sessions'])} / {found['max_sessions']}",
        f"Working memory evictions: {found['working_memory_evictions']}",
        f"Short-term evictions: {found['short_term_evictions']}",
    ]
    return lines + [
        f"  {session['session_id']}: Phase {session['phase']}, {session['compressed_at'][:10]}, "
        f"{session['original_tokens']} → {session['compressed_tokens']} tokens ({session['compression_ratio']:.2f}x)"
        for session in found["sessions"]
    ]
