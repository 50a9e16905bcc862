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

# Names are imported at first use, so that `import aether` costs next to nothing.

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name
if TYPE_CHECKING:
    from typing import Any

    from aether.api.admin import accept_edit as accept_edit
    from aether.api.admin import create_snapshot as create_snapshot
    from aether.api.admin import examine as examine
    from aether.api.admin import export as export
    from aether.api.admin import fold as fold
    from aether.api.admin import init as init
    from aether.api.admin import list_snapshots as list_snapshots
    from aether.api.admin import log as log
    from aether.api.admin import repair as repair
    from aether.api.admin import restore_snapshot as restore_snapshot
    from aether.api.admin import show as show
    from aether.api.admin import undo as undo
    from aether.api.archive import age_archive as age_archive
    from aether.api.archive import archive_conversations as archive_conversations
    from aether.api.archive import archive_files as archive_files
    from aether.api.archive import archive_stats as archive_stats
    from aether.api.archive import explain_retention as explain_retention
    from aether.api.archive import list_archived as list_archived
    from aether.api.archive import mark_conversation_important as mark_conversation_important
    from aether.api.archive import migrate_archive as migrate_archive
    from aether.api.archive import read_archived as read_archived
    from aether.api.archive import restore_conversation as restore_conversation
    from aether.api.archive import retention_recommendations as retention_recommendations
    from aether.api.archive import search_archive as search_archive
    from aether.api.archive import update_retention_policy as update_retention_policy
    from aether.api.archive import verify_archive as verify_archive
    from aether.api.backup import backups as backups
    from aether.api.backup import create_backup as create_backup
    from aether.api.backup import restore_backup as restore_backup
    from aether.api.backup import verify_backup as verify_backup
    from aether.api.colony import active_signals as active_signals
    from aether.api.colony import adapt_next_phase_from_memory as adapt_next_phase_from_memory
    from aether.api.colony import await_queen_decision as await_queen_decision
    from aether.api.colony import colony as colony
    from aether.api.colony import complete_phase as complete_phase
    from aether.api.colony import decide as decide
    from aether.api.colony import detect_crash as detect_crash
    from aether.api.colony import emit_signal as emit_signal
    from aether.api.colony import recover_from_crash as recover_from_crash
    from aether.api.colony import register_worker as register_worker
    from aether.api.colony import release_worker as release_worker
    from aether.api.colony import start_phase as start_phase
    from aether.api.colony import transition_state as transition_state
    from aether.api.compact import Options as Options
    from aether.api.compact import acompact as acompact
    from aether.api.compact import answered as answered
    from aether.api.compact import apreflight as apreflight
    from aether.api.compact import compact as compact
    from aether.api.compact import compaction_plan as compaction_plan
    from aether.api.compact import preflight as preflight
    from aether.api.compact import undo_compaction as undo_compaction
    from aether.api.compact_views import compaction_diff as compaction_diff
    from aether.api.compact_views import conversation_list as conversation_list
    from aether.api.compress import compress as compress
    from aether.api.compress import create_short_term_session as create_short_term_session
    from aether.api.compress import evict_short_term_session as evict_short_term_session
    from aether.api.compress import prepare_compression_data as prepare_compression_data
    from aether.api.compress import trigger_phase_boundary_compression as trigger_phase_boundary_compression
    from aether.api.context import add_message as add_message
    from aether.api.context import build_prompt as build_prompt
    from aether.api.context import checkpoints as checkpoints
    from aether.api.context import context_list as context_list
    from aether.api.context import context_status as context_status
    from aether.api.context import export_history as export_history
    from aether.api.context import handle_overflow as handle_overflow
    from aether.api.context import open_context as open_context
    from aether.api.context import restore_context as restore_context
    from aether.api.context import set_mode as set_mode
    from aether.api.context import set_model as set_model
    from aether.api.context import snapshots as snapshots
    from aether.api.context import stream_overflow as stream_overflow
    from aether.api.context import take_snapshot as take_snapshot
    from aether.api.context import validate_context as validate_context
    from aether.api.context_steps import compress_context as compress_context
    from aether.api.context_steps import emergency as emergency
    from aether.api.forget import forget as forget
    from aether.api.goals import add_goal as add_goal
    from aether.api.goals import block_goal as block_goal
    from aether.api.goals import checkpoint_goal as checkpoint_goal
    from aether.api.goals import current_goal as current_goal
    from aether.api.goals import decide_goal as decide_goal
    from aether.api.goals import finish_goal as finish_goal
    from aether.api.goals import goal as goal
    from aether.api.goals import goals as goals
    from aether.api.goals import next_step as next_step
    from aether.api.goals import pause_goal as pause_goal
    from aether.api.goals import record_artifact as record_artifact
    from aether.api.goals import set_step as set_step
    from aether.api.goals import start_goal as start_goal
    from aether.api.goals import unblock_goal as unblock_goal
    from aether.api.importing import import_transcripts as import_transcripts
    from aether.api.memory_tool import clear_memory_files as clear_memory_files
    from aether.api.memory_tool import memory_tool as memory_tool
    from aether.api.patterns import create_associative_link as create_associative_link
    from aether.api.patterns import detect_patterns_across_sessions as detect_patterns_across_sessions
    from aether.api.patterns import extract_pattern_to_long_term as extract_pattern_to_long_term
    from aether.api.patterns import trigger_pattern_extraction as trigger_pattern_extraction
    from aether.api.recall import recall as recall
    from aether.api.recall import search_memory as search_memory
    from aether.api.report import report as report
    from aether.api.resolve import resolve_memory as resolve_memory
    from aether.api.resolve import supersede_memory as supersede_memory
    from aether.api.share import join as join
    from aether.api.share import leave_share as leave_share
    from aether.api.share import share as share
    from aether.api.share import share_grant as share_grant
    from aether.api.share import share_members as share_members
    from aether.api.share import share_revoke as share_revoke
    from aether.api.share import share_status as share_status
    from aether.api.share import update_share as update_share
    from aether.api.status import get_compression_stats as get_compression_stats
    from aether.api.status import get_memory_status as get_memory_status
    from aether.api.timeline import file_history as file_history
    from aether.api.timeline import timeline as timeline
    from aether.api.tokens import record_usage as record_usage
    from aether.api.working import add_working_memory_item as add_working_memory_item
    from aether.api.working import add_working_memory_items as add_working_memory_items
    from aether.api.working import auto_compress_if_needed as auto_compress_if_needed
    from aether.api.working import check_token_threshold as check_token_threshold
    from aether.api.working import clear_working_memory as clear_working_memory
    from aether.api.working import get_working_memory_item as get_working_memory_item
    from aether.api.working import list_working_memory_items as list_working_memory_items
    from aether.api.working import update_working_memory_item as update_working_memory_item
    from aether.api.working import verify_token_limit as verify_token_limit
    from aether.compat.archive_manager import ArchivalManager as ArchivalManager
    from aether.compat.archive_manager import CompressionEngine as CompressionEngine
    from aether.compat.archive_manager import MemoryManager as MemoryManager
    from aether.compat.archive_manager import RetentionPolicy as RetentionPolicy
    from aether.compat.compact_manager import CompactManager as CompactManager
    from aether.compat.compact_manager import mark_protected as mark_protected
    from aether.compat.context_manager import ContextManager as ContextManager
    from aether.compat.context_orchestrator import AsyncContextOrchestrator as AsyncContextOrchestrator
    from aether.compat.context_orchestrator import ContextOrchestrator as ContextOrchestrator
    from aether.conversation.policy import CompactConfig as CompactConfig
    from aether.conversation.policy import CompactPolicy as CompactPolicy
    from aether.errors import AetherError as AetherError
    from aether.frameworks.recall_tool import recall_tool as recall_tool
    from aether.messages.convert import bare as bare

__version__ = "0.1.0"

_NAMES_IN = {
    "aether.api.admin": (
        "accept_edit create_snapshot examine export fold init list_snapshots log repair restore_snapshot show undo"
    ),
    "aether.api.archive": (
        "age_archive archive_conversations archive_files archive_stats explain_retention list_archived "
        "mark_conversation_important migrate_archive read_archived restore_conversation retention_recommendations "
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
    "aether.api.resolve": "resolve_memory supersede_memory",
    "aether.api.share": "join leave_share share share_grant share_members share_revoke share_status update_share",
    "aether.api.status": "get_compression_stats get_memory_status",
    "aether.api.timeline": "file_history timeline",
    "aether.api.tokens": "record_usage",
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
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names.split()}

# Former places of documented names, importable for one release; `aether.operations` only leads to what is below it.
_MOVED = {
    "aether.events.event": "aether.events.events",
    "aether.messages.formats": "aether.messages.convert",
    "aether.messages.repair": "aether.messages.validate",
    "aether.operations": "",
    "aether.operations.compaction_case": "aether.api.compact",
    "aether.redact.redaction": "aether.redact.redact",
}

__all__ = ["__version__", *sorted(_MODULE_OF)]  # noqa: PLE0604 - the names are in _NAMES_IN


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'aether' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__


class _Moved:
    """Import a module under its former name: the import system's finder and loader of `_MOVED`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG004 - the protocol's parameters
        if name not in _MOVED:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, _Moved, is_package=not _MOVED[name])  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> Any:
        if not _MOVED[spec.name]:
            return None
        from importlib import import_module

        module = import_module(_MOVED[spec.name])
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module: Any) -> None:
        if module.__spec__.loader_state:  # it was executed under its own name, and keeps it
            module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_Moved)
