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

# Names are imported at first use, so that `import aether` costs next to nothing.

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name
if TYPE_CHECKING:
    from typing import Any

    from aether.errors import AetherError as AetherError
    from aether.integrations.compact_manager import CompactConfig as CompactConfig
    from aether.integrations.compact_manager import CompactManager as CompactManager
    from aether.integrations.compact_manager import CompactPolicy as CompactPolicy
    from aether.integrations.compact_manager import mark_protected as mark_protected
    from aether.integrations.context_manager import ContextManager as ContextManager
    from aether.operations.architects import compress as compress
    from aether.operations.colony import active_signals as active_signals
    from aether.operations.colony import adapt_next_phase_from_memory as adapt_next_phase_from_memory
    from aether.operations.colony import await_queen_decision as await_queen_decision
    from aether.operations.colony import colony as colony
    from aether.operations.colony import complete_phase as complete_phase
    from aether.operations.colony import decide as decide
    from aether.operations.colony import detect_crash as detect_crash
    from aether.operations.colony import emit_signal as emit_signal
    from aether.operations.colony import recover_from_crash as recover_from_crash
    from aether.operations.colony import register_worker as register_worker
    from aether.operations.colony import release_worker as release_worker
    from aether.operations.colony import start_phase as start_phase
    from aether.operations.colony import transition_state as transition_state
    from aether.operations.compacting import answered as answered
    from aether.operations.compacting import compact as compact
    from aether.operations.compacting import compaction_plan as compaction_plan
    from aether.operations.compacting import preflight as preflight
    from aether.operations.compacting import undo_compaction as undo_compaction
    from aether.operations.compaction_case import Options as Options
    from aether.operations.compaction_views import compaction_diff as compaction_diff
    from aether.operations.compaction_views import conversation_list as conversation_list
    from aether.operations.compression import create_short_term_session as create_short_term_session
    from aether.operations.compression import evict_short_term_session as evict_short_term_session
    from aether.operations.compression import prepare_compression_data as prepare_compression_data
    from aether.operations.compression import (
        trigger_phase_boundary_compression as trigger_phase_boundary_compression,
    )
    from aether.operations.forgetting import forget as forget
    from aether.operations.home import examine as examine
    from aether.operations.home import export as export
    from aether.operations.home import fold as fold
    from aether.operations.home import init as init
    from aether.operations.home import log as log
    from aether.operations.home import repair as repair
    from aether.operations.home import show as show
    from aether.operations.home import undo as undo
    from aether.operations.importing import import_transcripts as import_transcripts
    from aether.operations.memory_files import clear_memory_files as clear_memory_files
    from aether.operations.memory_files import memory_tool as memory_tool
    from aether.operations.patterns import create_associative_link as create_associative_link
    from aether.operations.patterns import detect_patterns_across_sessions as detect_patterns_across_sessions
    from aether.operations.patterns import extract_pattern_to_long_term as extract_pattern_to_long_term
    from aether.operations.patterns import trigger_pattern_extraction as trigger_pattern_extraction
    from aether.operations.recalling import recall as recall
    from aether.operations.searching import search_memory as search_memory
    from aether.operations.snapshots import create_snapshot as create_snapshot
    from aether.operations.snapshots import list_snapshots as list_snapshots
    from aether.operations.snapshots import restore_snapshot as restore_snapshot
    from aether.operations.status import get_compression_stats as get_compression_stats
    from aether.operations.status import get_memory_status as get_memory_status
    from aether.operations.usage import record_usage as record_usage
    from aether.operations.working import add_working_memory_item as add_working_memory_item
    from aether.operations.working import add_working_memory_items as add_working_memory_items
    from aether.operations.working import auto_compress_if_needed as auto_compress_if_needed
    from aether.operations.working import check_token_threshold as check_token_threshold
    from aether.operations.working import clear_working_memory as clear_working_memory
    from aether.operations.working import get_working_memory_item as get_working_memory_item
    from aether.operations.working import list_working_memory_items as list_working_memory_items
    from aether.operations.working import update_working_memory_item as update_working_memory_item
    from aether.operations.working import verify_token_limit as verify_token_limit

__version__ = "0.1.0"

_HOMES = {
    "architects": "compress",
    "colony": (
        "active_signals adapt_next_phase_from_memory await_queen_decision colony complete_phase decide detect_crash "
        "emit_signal recover_from_crash register_worker release_worker start_phase transition_state"
    ),
    "compacting": "answered compact compaction_plan preflight undo_compaction",
    "compaction_views": "compaction_diff conversation_list",
    "compression": (
        "create_short_term_session evict_short_term_session prepare_compression_data "
        "trigger_phase_boundary_compression"
    ),
    "forgetting": "forget",
    "home": "examine export fold init log repair show undo",
    "importing": "import_transcripts",
    "memory_files": "clear_memory_files memory_tool",
    "patterns": (
        "create_associative_link detect_patterns_across_sessions extract_pattern_to_long_term "
        "trigger_pattern_extraction"
    ),
    "recalling": "recall",
    "searching": "search_memory",
    "snapshots": "create_snapshot list_snapshots restore_snapshot",
    "status": "get_compression_stats get_memory_status",
    "usage": "record_usage",
    "working": (
        "add_working_memory_item add_working_memory_items auto_compress_if_needed check_token_threshold "
        "clear_working_memory get_working_memory_item list_working_memory_items update_working_memory_item "
        "verify_token_limit"
    ),
}
_MODULE_OF = {
    name: f"aether.operations.{module}" for module, names in _HOMES.items() for name in names.split()
}
_MODULE_OF |= {
    "AetherError": "aether.errors",
    "CompactConfig": "aether.integrations.compact_manager",
    "CompactManager": "aether.integrations.compact_manager",
    "CompactPolicy": "aether.integrations.compact_manager",
    "ContextManager": "aether.integrations.context_manager",
    "Options": "aether.operations.compaction_case",
    "mark_protected": "aether.integrations.compact_manager",
}

__all__ = ["__version__", *sorted(_MODULE_OF)]  # noqa: PLE0604 - the names stand in _HOMES


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'aether' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
