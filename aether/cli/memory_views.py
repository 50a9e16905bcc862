"""How memory looks in a terminal: pure functions from results to lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aether.cli.output import facts, plain, short, table, when

LAYER_NAMES = {
    "working_memory": "working",
    "short_term_memory": "session",
    "long_term_memory": "pattern",
    "archive": "archive",
}
# Room for a statement that stands behind an indent or a label.
STATEMENT_COLUMNS = 90


def item_lines(item: Mapping[str, Any]) -> list[str]:
    """Return one item as lines."""
    metadata = item["metadata"]
    known = [
        ("id", item["id"]), ("type", item["type"]), ("relevance", metadata["relevance_score"]),
        ("tokens", item["token_count"]), ("added", when(metadata["timestamp"])), ("source", metadata["source"]),
        ("caste", metadata["caste"] or "—"), ("phase", metadata.get("phase", "—")),
        ("protected", "yes" if metadata.get("protected") else "no"),
        ("read", f"{metadata['access_count']}x, last {when(metadata['last_accessed'])}"),
    ]  # fmt: skip
    pointer = metadata.get("pointer") or {}
    if "file" in pointer:
        known.append(("from", f"{pointer['file']}, line {pointer.get('line', '?')}"))
    return [
        *facts(((name, plain(str(value))) for name, value in known), indent=0),
        "",
        plain(item["content"]),
    ]


def items_table(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return items, one per line."""
    rows = [
        (
            item["id"],
            item["type"],
            f"{item['metadata']['relevance_score']:.2f}",
            item["token_count"],
            short(item["content"], STATEMENT_COLUMNS),
        )
        for item in items
    ]
    return table(rows, head=("id", "type", "rel", "tokens", "content"), right=[2, 3])


def hit_lines(hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return search hits, best first, one per line."""
    rows = [
        (
            f"{hit['score']:.2f}",
            LAYER_NAMES[hit["layer"]],
            hit["id"],
            short(hit["content"], STATEMENT_COLUMNS),
        )
        for hit in hits
    ]
    return table(rows, head=("score", "layer", "id", "text"), right=[0])


def hit_page(hit: Mapping[str, Any]) -> list[str]:
    """Return one hit of any layer, whole."""
    rows = [(name, hit[name]) for name in ("id", "layer", "type", "phase", "at")]
    return [
        *facts([(name, "—" if value in (None, "") else value) for name, value in rows]),
        "",
        plain(hit["content"]),
    ]


def status_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the status of the three layers as lines."""
    work, short_term, long_term, metrics = (
        found[part] for part in ("working_memory", "short_term_memory", "long_term_memory", "metrics")
    )
    types = ", ".join(
        f"{name.removesuffix('_pattern')}={number}" for name, number in long_term["types"].items()
    )
    sections: dict[str, list[tuple[str, Any]]] = {
        "Working Memory": [
            ("Items", work["items"]),
            ("Tokens", f"{work['tokens']} / {work['max_capacity_tokens']} ({work['percent']:g}%)"),
            ("Eviction Threshold", work["eviction_threshold_tokens"]),
            ("Max Capacity", work["max_capacity_tokens"]),
            ("Counted by", work["counter"]),
        ],
        "Short-term Memory": [
            (
                "Sessions",
                f"{short_term['sessions']} / {short_term['max_sessions']} ({short_term['percent']:g}%)",
            ),
            ("Ratio", f"{short_term['target_ratio']}x target"),
        ],
        "Long-term Memory": [("Patterns", long_term["patterns"]), ("Types", types)],
        "Metrics": [
            ("Total compressions", metrics["total_compressions"]),
            ("Total pattern extractions", metrics["total_pattern_extractions"]),
            ("Average compression ratio", f"{metrics['average_compression_ratio']:.2f}x"),
            ("Working memory evictions", metrics["working_memory_evictions"]),
            ("Short-term evictions", metrics["short_term_evictions"]),
        ],
    }
    widest = max(len(label) + 1 for pairs in sections.values() for label, _ in pairs)
    lines: list[str] = []
    for title, pairs in sections.items():
        lines += [title, *facts(pairs, room=widest)]
    return lines


def verify_lines(usage: Any, verdict: str) -> list[str]:
    """Return what `memory verify` says."""
    return facts(
        [
            ("Max", usage.maximum),
            ("Current", f"{usage.current} ({usage.percent:g}%)"),
            ("Threshold", usage.threshold),
            ("Status", verdict),
        ],
        indent=0,
    )


def ingested_lines(done: Any) -> list[str]:
    """Return what a compression did."""
    session = done.session
    if not done.stored:
        return [f"Session {session['session_id']} was stored before; nothing changed."]
    lines = [
        f"Phase {session['phase']} compression complete:",
        *facts(
            [
                ("Session", session["session_id"]),
                ("Items compressed", done.items),
                ("Original tokens", session["original_tokens"]),
                ("Compressed tokens", session["compressed_tokens"]),
                ("Ratio", f"{session['compression_ratio']:.2f}x"),
                ("New patterns", len(done.patterns)),
            ]
        ),
    ]
    if session["compressed_tokens"] >= session["original_tokens"]:
        lines.append(
            "  There was too little to compress: the session is no smaller than its items. aether undo takes it back."
        )
    if done.carried:
        lines.append(f"  Carried over word for word, because the architect left it out: {len(done.carried)}")
        lines += [f"    {short(entry['content'], STATEMENT_COLUMNS)}" for entry in done.carried]
    if done.evicted:
        lines.append(f"  Sessions moved to the archive: {', '.join(done.evicted)}")
    lines += [f"  {line}" for line in contradiction_lines(done.contradictions)]
    return lines + [f"  Note: {plain(note)}" for note in done.notes]


def contradiction_lines(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return statements that contradict each other, a pair per line."""
    half = STATEMENT_COLUMNS // 2 - len("Contradiction: ") // 2
    return [f"Contradiction: {short(pair['pattern'], half)} ↔ {short(pair['other'], half)}" for pair in pairs]


def stats_lines(found: Mapping[str, Any]) -> list[str]:
    """Return what compression did so far."""
    lines = facts(
        [
            ("Total compressions", found["total_compressions"]),
            ("Average ratio", f"{found['average_compression_ratio']:.2f}x"),
            ("Sessions", f"{len(found['sessions'])} / {found['max_sessions']}"),
            ("Working memory evictions", found["working_memory_evictions"]),
            ("Short-term evictions", found["short_term_evictions"]),
        ],
        indent=0,
    )
    rows = [
        (
            session["session_id"],
            session["phase"],
            session["compressed_at"][:10],
            session["original_tokens"],
            session["compressed_tokens"],
            f"{session['compression_ratio']:.2f}x",
        )
        for session in found["sessions"]
    ]
    head = ("session", "phase", "date", "before", "after", "ratio")
    return [*lines, "", *table(rows, head=head, right=[1, 3, 4, 5])] if rows else lines
