"""The numbers of the README, read from `benchmarks/results/`: nothing there is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def result(name: str) -> Any:
    """Return what the benchmark `name` wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows() -> list[tuple[str, str, str]]:
    """Return question, answer and benchmark, one row a number."""
    return [*_speed(), *_quality()]


def _speed() -> list[tuple[str, str, str]]:
    adds = [run["ratios"] for run in result("durable_add")["runs"]]
    starts = [run["over_python_c_pass"] for run in result("startup")["runs"]]
    largest = result("import_speed")["rows"][-1]
    compressed = result("architect_speed")["rows"][-1]
    searched = result("search_speed")["results"][-1]
    full, row, rewrite = (
        median(run[name] for run in adds)
        for name in ("full_over_empty", "full_over_sqlite_row", "rewrite_over_add_full")
    )
    library, command, status, shown = (
        median(run[name] for run in starts)
        for name in ("add_by_python", "add_by_cli", "memory_status", "help")
    )
    return [
        ("durable addition of one item, full against empty working memory", f"{full:.2f} ×", "durable_add"),
        ("… against one committed SQLite row (WAL, synchronous=FULL)", f"{row:.2f} ×", "durable_add"),
        ("… rewriting the whole document instead would cost", f"{rewrite:.1f} ×", "durable_add"),
        (
            "fresh process that adds an item, against `python -c pass`",
            f"{library:.1f} × in Python, {command:.1f} × as a command",
            "startup",
        ),
        ("`aether memory status` and `--help`, cold", f"{status:.1f} × and {shown:.1f} ×", "startup"),
        (
            "import of the largest real transcript",
            f"{largest['capture_mb_per_s']:.0f} MB/s, {largest['capture_peak_mib']:.0f} MiB at the peak, flat",
            "import_speed",
        ),
        (
            f"compressing {compressed['tokens']:,} tokens without a model",
            f"{compressed['seconds']:.1f} s, linear",
            "architect_speed",
        ),
        (
            f"search over {searched['items']:,} archived items, warm",
            f"p50 {searched['warm']['p50_ms']:.0f} ms (goal 10)",
            "search_speed",
        ),
    ]


def _quality() -> list[tuple[str, str, str]]:
    kept = result("architect_fidelity")
    talk, longest = (kept["conversations"][name] for name in ("extractive", "longest"))
    traces = kept["transcripts"]["kept"]
    recall = result("search_recall")["results"]
    ours, bm25 = recall["held out: aether"], recall["held out: plain BM25"]
    counted = result("token_estimate")
    return [
        (
            "answers still there after compression to 1/2.5, LoCoMo, conversations not developed on",
            f"{talk['held_out']['kept']:.2f} (goal 0.90; longest sentences {longest['held_out']['kept']:.2f}); developed on: {talk['developed']['kept']:.2f}",
            "architect_fidelity",
        ),
        (
            "in real coding transcripts: files edited, user constraints, paths, commands, identifiers, errors",
            ", ".join(
                f"{traces[name]:.2f}"
                for name in ("files_edited", "user_constraints", "paths", "commands", "identifiers", "errors")
            ),
            "architect_fidelity",
        ),
        (
            "evidence among the first ten hits, LoCoMo, conversations not developed on",
            f"{ours['recall@10']:.2f} (goal 0.80; plain BM25 {bm25['recall@10']:.2f}); developed on: {recall['developed on: aether']['recall@10']:.2f}",
            "search_recall",
        ),
        (
            "kinds of text whose tokens are estimated within 10 % of o200k",
            f"{100 * counted['within_10_percent']:.0f} %, all of it {counted['total']['error_percent']:+.1f} %",
            "token_estimate",
        ),
    ]


def table() -> list[str]:
    """Return the table as Markdown lines."""
    lines = ["| question | measured | benchmark |", "|---|---|---|"]
    return lines + [
        f"| {asked} | {answer} | [`{name}`](benchmarks/{name}.py) |" for asked, answer, name in rows()
    ]
