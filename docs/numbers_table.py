"""The numbers of docs/benchmarks.md and the README, read from `benchmarks/results/`: nothing there is written by hand."""

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
    return [*_speed(), *_growth(), *_quality(), *_compaction(), *_hooks()]


def _speed() -> list[tuple[str, str, str]]:
    adds = [run["ratios"] for run in result("durable_add")["runs"]]
    starts = [run["over_python_c_pass"] for run in result("startup")["runs"]]
    largest = result("import_speed")["rows"][-1]
    compressed = result("architect_speed")["rows"][-1]
    searched = result("search_speed")["results"][-1]
    batch, disk = result("batch_add")["cpu_over"], result("disk_use")["over_text"]
    full, row, rewrite = (
        median(run[name] for run in adds)
        for name in ("full_over_empty", "full_over_sqlite_row", "rewrite_over_add_full")
    )
    library, command, status, shown = (
        median(run[name] for run in starts)
        for name in ("add_by_python", "add_by_cli", "memory_status", "help")
    )
    return [
        (
            "durable addition of one item: full compared with empty working memory",
            f"{full:.2f} ×",
            "durable_add",
        ),
        ("… compared with one committed SQLite row (WAL, synchronous=FULL)", f"{row:.2f} ×", "durable_add"),
        ("… rewriting the whole document instead would cost", f"{rewrite:.1f} ×", "durable_add"),
        (
            "1,000 additions in one commit, compared with as many SQLite rows in one transaction, with an index of words and without",
            f"{batch['sqlite_with_words']:.1f} × and {batch['sqlite']:.1f} × (goal 2)",
            "batch_add",
        ),
        (
            "durable additions of eight processes together, as a share of those of eight writers of SQLite",
            f"{result('writers')['share_of_sqlite']:.2f} (goal 1)",
            "writers",
        ),
        (
            "undo of the newest change: 12,000 live items compared with 1,000",
            f"{result('undo_newest')['ratio']:.2f} ×",
            "undo_newest",
        ),
        (
            "files of a home after LoCoMo's chats were imported, and then asked about, compared with their text",
            f"{disk['imported']:.1f} × and {disk['asked']:.1f} × (goal 4; SQLite with an index of words {disk['rival']:.1f} ×)",
            "disk_use",
        ),
        (
            "fresh process that adds an item, compared with `python -c pass`",
            f"{library:.1f} × in Python, {command:.1f} × as a command",
            "startup",
        ),
        ("`aether status --layers` and `--help`, cold", f"{status:.1f} × and {shown:.1f} ×", "startup"),
        (
            "reading the largest real transcript, repeated eight times, and extracting its notes, before they are stored",
            f"{largest['capture_mb_per_s']:.0f} MB per CPU second, {largest['capture_peak_mib']:.0f} MiB at the peak, flat",
            "import_speed",
        ),
        *(
            (
                f"`aether import` of {row['format']}, {row['mb']:.0f} MB, the whole command",
                f"{row['mb_per_cpu_s']:.1f} MB per CPU second (goal {row['goal_mb_per_s']})",
                "import_speed",
            )
            for row in result("import_speed").get("commands", ())
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
        *(
            (
                f"{one['planted']} planted answers in {one['items']:,} items ({one['archive']}): answers found, and median CPU time of a question",
                "; ".join(
                    f"{name} {each['found']}, {each['p50_ms']:.1f} ms"
                    for name, each in one["engines"].items()
                ),
                "search_engines",
            )
            for one in result("search_engines")["results"]
        ),
        *(
            (
                "search in a home with all layers: warm call, and `aether memory search` compared with `python -c pass`",
                f"p50 {layers['warm']['p50_ms']:.0f} ms, {layers['command_over_python_c_pass']:.1f} ×",
                "search_speed",
            )
            for layers in filter(None, [result("search_speed").get("all_layers")])
        ),
    ]


def _growth() -> list[tuple[str, str, str]]:
    homes = [result("growth")[name] for name in ("items", "conversations")]
    items = homes[0]["commands"]
    exponents = {name: one["exponent"] for name, one in items.items() if name not in ("doctor", "floor")}
    steepest = max(exponents, key=lambda name: exponents[name])
    sizes = [home["sizes"][-1] for home in homes]
    shown = ("log", "timeline", "recall", "undo")
    doctors = [
        (home["commands"]["doctor"]["times_python_c_pass"][-1] - 1)
        / (home["commands"]["floor"]["times_python_c_pass"][-1] - 1)
        for home in homes
    ]
    return [
        (
            f"{', '.join(f'`aether {name}`' for name in shown)} with {sizes[0]:,} archived items, compared with `python -c pass`",
            ", ".join(f"{items[name]['times_python_c_pass'][-1]:.1f} ×" for name in shown),
            "growth",
        ),
        (
            f"growth of {len(exponents)} commands and hooks from {sizes[0] // 10:,} to {sizes[0]:,} archived items: steepest exponent (0 is constant, 1 linear)",
            f"{exponents[steepest]:.2f} ({steepest})",
            "growth",
        ),
        (
            f"`aether doctor` of {sizes[0]:,} archived items, and of {sizes[1]:,} archived conversations, compared with reading and hashing their files",
            " and ".join(f"{times:.1f} ×" for times in doctors) + " (goal 3)",
            "growth",
        ),
    ]


def _quality() -> list[tuple[str, str, str]]:
    kept = result("architect_fidelity")
    talk, longest = (kept["conversations"][name] for name in ("extractive", "longest"))
    traces = kept["transcripts"]["kept"]
    recall = result("search_recall")
    counted = result("token_estimate")
    return [
        (
            "answers still present after compression to 1/2.5, LoCoMo, conversations not used in development",
            f"{talk['held_out']['kept']:.2f} (goal 0.90; longest sentences {longest['held_out']['kept']:.2f}); those used: {talk['developed']['kept']:.2f}",
            "architect_fidelity",
        ),
        (
            "kept of real coding transcripts: files edited, rules, sentences of a person, paths, commands, identifiers, errors",
            ", ".join(
                f"{traces[name]:.2f}"
                for name in (
                    "files_edited",
                    "rules",
                    "person_sentences",
                    "paths",
                    "commands",
                    "identifiers",
                    "errors",
                )
            ),
            "architect_fidelity",
        ),
        *(
            (
                f"evidence among the first ten hits, {corpus}",
                f"{found['aether']['turn recall@10']:.2f} (plain BM25 {found['plain BM25']['turn recall@10']:.2f})",
                "search_recall",
            )
            for corpus, found in (
                ("LoCoMo, six conversations", recall["locomo"]),
                ("BEAM, ten chats of 100,000 tokens", recall["beam"]),
            )
        ),
        (
            "right session first, LoCoMo, six conversations",
            f"{recall['locomo']['aether']['session hit@1']:.2f} (plain BM25 {recall['locomo']['plain BM25']['session hit@1']:.2f}; deja-vu 0.18, by its author, on ten: 0.70)",
            "search_recall",
        ),
        (
            "kinds of text with a token estimate within 10 % of o200k",
            f"{100 * counted['within_10_percent']:.0f} %; over all text {counted['total']['error_percent']:+.1f} %",
            "token_estimate",
        ),
    ]


def _compaction() -> list[tuple[str, str, str]]:
    looked = result("compaction_preflight")
    session, grown = looked["session"], looked["grown_by_one"]
    counted = result("message_counting")["by_counter"]
    kept = result("compaction_decay")["kept_verbatim"]
    files = result("compaction_files")
    by_hand = result("compaction_by_hand")["policies"].values()
    five = [one for name, one in kept.items() if name.endswith("_after_5")]
    twenty = [one for name, one in kept.items() if name.endswith("_after_20")]
    contexts = [
        one for name, one in result("context_facts")["share_of_facts"].items() if name.endswith("_after_20")
    ]
    against = [one for one in contexts if "langchain, last five" in one]
    return [
        (
            "planted facts still available after 20 compressions: of the last five, in the context; of all, in the context or by one `recall`",
            f"{_worst(contexts, 'last five')} (a sliding window: {_worst(contexts, 'window, last five')}; LangChain's summariser: {_worst(against, 'langchain, last five')}), {_worst(contexts, 'context or one recall')} (worst case)",
            "context_facts",
        ),
        (
            f"checking {looked['messages']:,} messages before a model call, with nothing to compact",
            f"{grown['median_ms']:.0f} ms when one message is new, {grown['first_ms'] / 1e3:.1f} s in a new process",
            "compaction_preflight",
        ),
        (
            f"preflight in a session of {session['turns']:,} turns with {session['compactions']} compactions",
            f"{100 * session['share_of_wall_time']:.1f} % of the wall time (goal 1 %), {session['preflight_ms_per_turn']:.0f} ms a turn",
            "compaction_preflight",
        ),
        (
            "counting messages",
            ", ".join(f"{name} {one['megabytes_per_second']:.0f} MB/s" for name, one in counted.items()),
            "message_counting",
        ),
        (
            "planted facts still present verbatim, without a model: after 5 compactions, and after 20",
            f"{_least(five, 'first', 'together')}, {_least(twenty, 'first', 'together')}; goals {_least(twenty, 'all', 'goal')}, constraints {_least(twenty, 'all', 'constraint')} (worst window)",
            "compaction_decay",
        ),
        (
            "edited files that are still named after real compactions",
            f"{files['we_name']} of {files['edited']} (Claude Code's own summaries of the same length: {files['model_names']})",
            "compaction_files",
        ),
        (
            "a coding session compacted by hand, far from its trigger",
            f"{100 * min(one['smaller_by'] for one in by_hand):.0f} % smaller at least, with every policy",
            "compaction_by_hand",
        ),
    ]


def _hooks() -> list[tuple[str, str, str]]:
    measured = result("hook_latency")
    empty, full = (measured["homes"][name]["times_python_c_pass_cpu"] for name in ("empty", "full"))
    goals = measured["goals_over_python_c_pass"]
    starts = ("SessionStart startup", "SessionStart compact")
    told = result("prompt_recall")
    kept = result("briefing_value")["told_of_a_compaction"]
    return [
        (
            "CPU time of a hook after a tool call, compared with `python -c pass`, empty and full home",
            f"{empty['PostToolUse']['median']:.1f} × and {full['PostToolUse']['median']:.1f} × (goal {goals['PostToolUse']:g})",
            "hook_latency",
        ),
        (
            "CPU time of a hook at the start of a session and after a compaction, full home",
            " and ".join(f"{full[name]['median']:.1f} ×" for name in starts)
            + f" (goal {goals['SessionStart']:g})",
            "hook_latency",
        ),
        (
            "CPU time of a hook at a prompt and at the end of a turn, full home",
            f"{full['UserPromptSubmit']['median']:.1f} × and {full['Stop']['median']:.1f} ×"
            + (f" (goal {goals['Stop']:g})" if "Stop" in goals else ""),
            "hook_latency",
        ),
        (
            "real prompts that got memory: of the same project, and of another one",
            f"{told['same_project']['told']} of {told['same_project']['prompts']}, {told['other_projects']['told']} of {told['other_projects']['prompts']:,}",
            "prompt_recall",
        ),
        (
            "facts of real sessions injected again after a compaction: edited files, open errors",
            f"{kept['edited_files']['told']} of {kept['edited_files']['of']}, {kept['open_errors']['told']} of {kept['open_errors']['of']}",
            "briefing_value",
        ),
    ]


def _worst(cases: list[Any], which: str) -> str:
    return f"{min(case[which] for case in cases):.2f}"


def _least(measured: list[Any], which: str, kind: str) -> str:
    return f"{min(one[which][kind] for one in measured):.2f}"


_PEERS = {
    "aether": "aether",
    "aether_extractive": "aether, without a model",
    "langchain": "LangChain",
    "langchain_keep_tenth": "LangChain, keep a tenth",
    "deepagents": "deepagents",
    "agent_framework": "Agent Framework, composed",
    "agent_framework_window": "Agent Framework, window",
}
_COLUMNS = {
    "compactions": "compactions",
    "invalid_for_openai": "results OpenAI would refuse",
    "sent_over_budget": "calls sent over the budget",
    "worst_over_budget": "the worst, as a multiple of it",
    "raised": "errors raised",
    "opening_request_gone": "opening request lost",
    "newest_request_gone": "newest request lost",
    "rule_gone": "rule lost",
    "error_text_became_memory": "error text became memory",
    "empty_summary_replaced_history": "empty summary replaced history",
    "median_ms": "median, ms",
    "p95_ms": "p95, ms",
    "median_cpu_ms": "median CPU time, ms",
    "p95_cpu_ms": "p95 CPU time, ms",
}
# Real sessions have no rule, and their summariser never fails.
_ONLY_GENERATED = {"rule_gone", "error_text_became_memory", "empty_summary_replaced_history"}


def peers_table() -> list[str]:
    """Return how each system handled the same histories, one row a question, one table a scenario."""
    measured = result("compaction_peers")
    lines = []
    for scenario, found in measured["found"].items():
        first = next(iter(found.values()))
        lines += [
            f"{scenario.replace('_', ' ').capitalize()}; {first['conversations']} conversations, {first['model_calls']:,} model calls:",
            "",
            "| | " + " | ".join(_named(name, measured["versions"]) for name in found) + " |",
            "|---" * (len(found) + 1) + "|",
        ]
        for key, words in _COLUMNS.items():
            if scenario != "real_sessions" or key not in _ONLY_GENERATED:
                lines.append(
                    f"| {words} | " + " | ".join(_cell(key, one[key]) for one in found.values()) + " |"
                )
        lines.append("")
    absent = [_PEERS[name] for name, version in measured["versions"].items() if version == "not installed"]
    return [*lines, f"Not installed where this was measured: {', '.join(absent)}."] if absent else lines[:-1]


_SUMMARIES = {
    "user_sentences": "words in sentences of the user, verbatim",
    "user_words": "different words of the user",
    "files": "edited files",
    "changed": "names of what edits define",
    "checks": "checks with their result",
    "plan": "open entries of the plan",
    "late_errors": "late unsolved errors",
}


def summaries_table() -> list[str]:
    """Return what three texts of the same size keep of real sessions, one row a measure."""
    measured = result("compaction_summaries")
    lines = [
        f"{measured['compactions']} compactions, {sum(one['tokens']['host'] for one in measured['each']):,} tokens of summaries:",
        "",
        "| still present | of | Claude Code's model | user's messages, files, last messages | aether, without a model |",
        "|---|---|---|---|---|",
    ]
    for key, words in _SUMMARIES.items():
        one = measured["together"][key]
        shares = (f"{one[name] / one['of']:.2f}" for name in ("host", "baseline", "aether"))
        lines.append(f"| {words} | {one['of']:,} | " + " | ".join(shares) + " |")
    return lines


def _named(name: str, versions: dict[str, str]) -> str:
    return _PEERS[name] if name.startswith("aether") else f"{_PEERS[name]} ({versions[name]})"


def _cell(key: str, value: float) -> str:
    if key == "worst_over_budget":
        return f"{value:.2f}" if value else "—"
    return f"{value:.1f}" if key.endswith("_ms") else f"{value:,}"


# Starts of the questions whose answers README shows: the best and the worst against a goal or another program.
BEST = (
    "planted facts still available after 20 compressions",
    "right session first",
    "edited files that are still named",
)
WORST = (
    "`aether import` of a list of chat messages",
    "40 planted answers in 100,000 items (steep",
    "facts of real sessions injected again",
)


def table() -> list[str]:
    """Return all numbers as the lines of a table of Markdown."""
    return _table(rows(), "../benchmarks")


def best_and_worst() -> list[str]:
    """Return the three best and the three worst numbers as the lines of a table of Markdown."""
    chosen = [next(row for row in rows() if row[0].startswith(start)) for start in (*BEST, *WORST)]
    return _table(chosen, "benchmarks")


def _table(numbers: list[tuple[str, str, str]], directory: str) -> list[str]:
    lines = ["| question | measured | benchmark |", "|---|---|---|"]
    return lines + [
        f"| {question} | {answer} | [`{name}`]({directory}/{name}.py) |" for question, answer, name in numbers
    ]
