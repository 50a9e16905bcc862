"""Memory for LLM agents: keep what they decided and learned, and make their conversations fit a model's window.

The main verbs, in the order of use:

    init                            make a home, the directory .aether/ that holds a colony's memory
    add_working_memory_item         store one item: a decision, a constraint, an outcome, a blocker
    import_transcripts              store the items of Claude Code and Codex transcripts, chats and text
    recall, search_memory           find entries in all layers and the archive
    complete_phase, compress        turn the items of a phase into a session, and repeated ones into patterns
    get_memory_status               show how full each layer is
    compact, preflight              make a message list fit a budget, with protected messages untouched
    undo, forget, log               reverse a change, forget an entry, list all changes

A first session:

    import aether

    aether.init()
    aether.add_working_memory_item("State is JSON, because people read it.", "decision", 0.9)
    aether.search_memory("how is state stored")

Each function takes `home=None`: the home of `AETHER_HOME`, else the nearest `.aether/` above the current directory.
State is JSON that a person can read, every write is atomic, and no model, server or daemon is needed. Errors are
subclasses of `AetherError`, with the place, the reason and the fix. The command `aether` offers the same verbs.
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

__all__ = ["__version__", *sorted(_MODULE_OF)]  # noqa: PLE0604 - the names are in _NAMES_IN


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'aether' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__


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
