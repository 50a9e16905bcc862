"""Memory for LLM agents: keep what they decided and learned, and make their conversations fit a model's window.

A first session:

    import aether

    aether.init()
    aether.add_working_memory_item("State is JSON, because people read it.", "decision", 0.9)
    aether.recall("how is state stored")

Each function takes `home=None`: the home of `AETHER_HOME`, else the nearest `.aether/` above the current directory.
State is JSON that a person can read, every write is atomic, and no model, server or daemon is needed. Errors are
subclasses of `AetherError`, with the place, the reason and the fix. The command `aether` offers the same verbs.

All functions by task; `help(aether.NAME)` shows the arguments, the result and the errors of one:

    Make a home, look at it, and take a change back
        init, get_memory_status, get_compression_stats, log, show, export, report, undo, undo_source
    Store, read and change single items
        add_working_memory_item, add_working_memory_items, get_working_memory_item, list_working_memory_items,
        update_working_memory_item, clear_working_memory, import_transcripts
    Search, and ask where an entry came from
        recall, search_memory, timeline, file_history, trace
    End, replace, forget
        resolve_memory, supersede_memory, forget
    Turn items into sessions
        compress, check_token_threshold, auto_compress_if_needed, verify_token_limit, prepare_compression_data,
        trigger_phase_boundary_compression, create_short_term_session, evict_short_term_session
    Turn repeated statements into patterns, and link entries
        trigger_pattern_extraction, detect_patterns_across_sessions, extract_pattern_to_long_term,
        create_associative_link
    Lead the colony through its phases
        colony, start_phase, complete_phase, transition_state, await_queen_decision, decide, emit_signal,
        active_signals, adapt_next_phase_from_memory, register_worker, release_worker, detect_crash,
        recover_from_crash
    Work side by side
        claim, release, claims, hand_over, inbox, roster
    Let rules stop calls of tools
        enforce_rule, relax_rule, enforced_rules, rule_proposals, calls_stopped_by
    Keep a goal through every conversation
        add_goal, goal, goals, current_goal, start_goal, pause_goal, finish_goal, next_step, set_step, block_goal,
        unblock_goal, decide_goal, checkpoint_goal, record_artifact
    Make messages fit a window
        preflight, compact, apreflight, acompact, answered, Options, bare, mark_protected, compaction_plan,
        compaction_diff, conversation_list, undo_compaction, record_usage, recall_tool
    Hold a long conversation
        open_context, add_message, build_prompt, context_status, context_list, validate_context, compress_context,
        emergency, handle_overflow, stream_overflow, set_mode, set_model, checkpoints, take_snapshot, snapshots,
        restore_context, export_history
    Archive conversations that lose detail with age
        archive_conversations, archive_files, list_archived, read_archived, search_archive, archive_stats,
        age_archive, restore_conversation, mark_conversation_important, explain_retention,
        retention_recommendations, update_retention_policy, verify_archive
    Check, repair, save and restore a home
        examine, repair, fold, accept_edit, create_snapshot, list_snapshots, restore_snapshot, create_backup,
        backups, verify_backup, restore_backup
    Share a colony between machines
        share, join, update_share, leave_share, share_status, share_members, share_grant, share_revoke, share_remove
    Serve Anthropic's memory tool
        memory_tool, clear_memory_files
    Call aether under the names of earlier projects
        CompactManager, CompactConfig, CompactPolicy, ContextManager, ContextOrchestrator, AsyncContextOrchestrator,
        MemoryManager, ArchivalManager, CompressionEngine, RetentionPolicy
"""

from __future__ import annotations

import sys

# Names are imported at first use, so that `import aether` costs next to nothing; type checkers read `__init__.pyi`.

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_NAMES_IN = {
    "aether.api.admin": (
        "accept_edit create_snapshot examine export fold init list_snapshots log repair restore_snapshot show undo"
    ),
    "aether.api.archive": (
        "age_archive archive_conversations archive_files archive_stats explain_retention list_archived "
        "mark_conversation_important read_archived restore_conversation retention_recommendations "
        "search_archive update_retention_policy verify_archive"
    ),
    "aether.api.backup": "backups create_backup restore_backup verify_backup",
    "aether.api.colony": (
        "active_signals adapt_next_phase_from_memory await_queen_decision colony complete_phase decide "
        "detect_crash emit_signal recover_from_crash register_worker release_worker start_phase "
        "transition_state"
    ),
    "aether.api.compact": "Options acompact answered apreflight compact compaction_plan preflight undo_compaction",
    "aether.api.compact_views": "compaction_diff conversation_list",
    "aether.api.compress": (
        "compress create_short_term_session evict_short_term_session prepare_compression_data "
        "trigger_phase_boundary_compression"
    ),
    "aether.api.context": (
        "add_message build_prompt checkpoints context_list context_status export_history handle_overflow open_context "
        "restore_context set_mode set_model snapshots stream_overflow take_snapshot validate_context"
    ),
    "aether.api.context_steps": "compress_context emergency",
    "aether.api.forget": "forget",
    "aether.api.goals": (
        "add_goal block_goal checkpoint_goal current_goal decide_goal finish_goal goal goals next_step pause_goal "
        "record_artifact set_step start_goal unblock_goal"
    ),
    "aether.api.importing": "import_transcripts",
    "aether.api.memory_tool": "clear_memory_files memory_tool",
    "aether.api.patterns": (
        "create_associative_link detect_patterns_across_sessions extract_pattern_to_long_term "
        "trigger_pattern_extraction"
    ),
    "aether.api.recall": "recall search_memory",
    "aether.api.report": "report",
    "aether.api.review": "resolve_memory supersede_memory",
    "aether.api.enforcing": "calls_stopped_by enforce_rule enforced_rules relax_rule rule_proposals",
    "aether.api.share": "join leave_share share share_grant share_members share_remove share_revoke share_status update_share",
    "aether.api.status": "get_compression_stats get_memory_status",
    "aether.api.teamwork": "claim claims hand_over inbox release roster",
    "aether.api.timeline": "file_history timeline",
    "aether.api.tokens": "record_usage",
    "aether.api.trace": "trace",
    "aether.api.withdraw": "undo_source",
    "aether.api.working": (
        "add_working_memory_item add_working_memory_items auto_compress_if_needed check_token_threshold "
        "clear_working_memory get_working_memory_item list_working_memory_items "
        "update_working_memory_item verify_token_limit"
    ),
    "aether.conversation.policy": "CompactConfig CompactPolicy",
    "aether.errors": "AetherError",
    "aether.compat.archive_manager": "ArchivalManager CompressionEngine MemoryManager RetentionPolicy",
    "aether.compat.compact_manager": "CompactManager mark_protected",
    "aether.compat.context_manager": "ContextManager",
    "aether.compat.context_orchestrator": "AsyncContextOrchestrator ContextOrchestrator",
    "aether.frameworks.recall_tool": "recall_tool",
    "aether.messages.convert": "bare",
}
_FORMER = (
    "aether.backends.", "aether.events.event.", "aether.integrations.", "aether.messages.formats.",
    "aether.messages.repair.", "aether.operations.", "aether.redact.redaction.",
)  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names.split()}

# A star import brings the everyday verbs, and `help(aether)` spells out no others: those of all names fill 2,000 lines.
__all__ = ["add_working_memory_item", "compact", "compress", "init", "recall", "undo"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'aether' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return ["__version__", *sorted(_MODULE_OF)]


class _Former:
    """Finds modules under their former names, which `aether.compat.deprecations` lists."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG004 - the protocol's parameters
        if not f"{name}.".startswith(_FORMER):
            return None
        from aether.compat import deprecations

        return deprecations.find_spec(name)


# Before the other finders: they would load what is below a former package a second time.
sys.meta_path.insert(0, _Former)
