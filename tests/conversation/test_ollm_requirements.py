"""What OLLM-CLI asked of a context, line by line: the tests that show it; and the names that others rely on."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

import aether
from aether.cli.main import main
from aether.conversation import checkpoint_levels as levels
from aether.conversation import modes
from aether.conversation.checkpoint_levels import Source
from aether.messages import convert
from aether.tokens.estimate import estimate
from tests.conversation.test_defects import text
from tests.tables import rows

ROOT = Path(__file__).parents[2]
REQUIREMENT = ROOT.parent / "shared" / "requirements" / "003-context-compression.md"
CONTEXT, SUMMARIES, DEFECTS = (
    "conversation/test_context",
    "conversation/test_summaries",
    "conversation/test_defects",
)
GOALS, CHAT, SHELL, LAWS = (
    "conversation/test_goals",
    "api/test_chat",
    "cli/test_chat",
    "laws/test_context_laws",
)
SOAK, CRASH = "soak/test_contexts", "crash/test_context_faults"
SHOWN_BY = {
    "US-1": f"{DEFECTS}::test_defect_01_four_hundred_messages_of_a_hundred_tokens",
    "US-2": f"{SUMMARIES}::test_a_good_answer_is_taken_with_the_facts_that_it_lacks",
    "US-3": f"{LAWS}::test_a_conversation_holds_all_laws_whatever_happens",
    "US-4": f"{CONTEXT}::test_checkpoints_age_at_three_six_and_ten_compressions_in_their_place",
    "US-5": f"{CHAT}::test_a_failed_backend_loses_nothing_and_is_asked_again",
    "US-6": f"{CONTEXT}::test_what_a_summariser_decides_is_proposed_until_the_assistant_says_it",
    "US-7": f"{SHELL}::test_a_full_window_is_compressed_and_said",
    "US-8": f"{CONTEXT}::test_the_history_is_exported_as_markdown_and_json",
    "FR-1.1": f"{CONTEXT}::test_a_prompt_is_system_then_checkpoints_then_recent_then_new",
    "FR-1.2": f"{CONTEXT}::test_a_snapshot_is_restored_byte_for_byte_with_its_settings_and_that_can_be_undone",
    "FR-1.3": f"{CONTEXT}::test_the_history_is_exported_as_markdown_and_json",
    "FR-1.4": f"{CONTEXT}::test_what_is_no_message_is_refused",
    "FR-1.5": f"{CONTEXT}::test_only_typed_parts_are_sent",
    "FR-2.1": f"{SUMMARIES}::test_a_good_answer_is_taken_with_the_facts_that_it_lacks",
    "FR-2.2": f"{SUMMARIES}::test_a_model_is_asked_with_level_mode_and_goal_and_everything_else_as_data",
    "FR-2.3": f"{CHAT}::test_the_input_is_blocked_while_a_chat_compresses_and_at_no_other_time",
    "FR-2.4": f"{CONTEXT}::test_a_compression_reports_six_stages_and_can_be_undone",
    "FR-2.5": f"{SUMMARIES}::test_a_backend_that_fails_is_not_asked_again",
    "FR-3.1": f"{CONTEXT}::test_validation_suggests_by_priority_with_estimates_and_counts_nothing_again",
    "FR-3.2": f"{CONTEXT}::test_a_profile_of_the_home_gives_the_limit",
    "FR-3.3": f"{CONTEXT}::test_what_cannot_fit_is_named_and_refused_at_once_the_second_time",
    "FR-3.4": f"{CONTEXT}::test_a_message_larger_than_the_window_is_sent_shortened_and_kept_whole",
    "FR-3.5": f"{LAWS}::test_a_conversation_holds_all_laws_whatever_happens",
    "FR-4.1": f"{CONTEXT}::test_checkpoints_age_at_three_six_and_ten_compressions_in_their_place",
    "FR-4.2": f"{CONTEXT}::test_checkpoints_age_at_three_six_and_ten_compressions_in_their_place",
    "FR-4.3": f"{SUMMARIES}::test_an_answer_longer_than_what_it_replaces_is_rejected",
    "FR-4.4": f"{CONTEXT}::test_fifteen_checkpoints_stay_in_their_budget",
    "FR-4.5": f"{SUMMARIES}::test_merged_checkpoints_keep_the_facts_of_all",
    "FR-5.1": f"{CONTEXT}::test_calls_stay_with_their_results_and_recent_users_stay_whole",
    "FR-5.2": f"{SUMMARIES}::test_a_backend_is_asked_at_low_temperature_without_secrets",
    "FR-5.3": f"{SUMMARIES}::test_a_rejected_answer_is_followed_by_the_built_in_text",
    "FR-5.4": f"{CONTEXT}::test_what_left_the_context_is_found_by_its_number",
    "FR-5.5": f"{CONTEXT}::test_a_compression_reports_six_stages_and_can_be_undone",
    "FR-5.6": f"{DEFECTS}::test_defect_07_a_failed_compression_counts_and_records_nothing",
    "FR-6.1": f"{CONTEXT}::test_a_summariser_that_hangs_costs_its_time_and_nothing_else",
    "FR-6.2": f"{CHAT}::test_a_failed_backend_loses_nothing_and_is_asked_again",
    "FR-6.3": f"{SUMMARIES}::test_a_rejected_answer_is_followed_by_the_built_in_text",
    "FR-6.4": f"{SHELL}::test_a_failure_is_said_once_and_the_next_line_goes_on",
    "FR-6.5": f"{CRASH}::test_a_fault_at_any_call_leaves_the_steps_before_it_and_a_context_that_goes_on",
    "FR-7.1": f"{SUMMARIES}::test_a_model_is_asked_with_level_mode_and_goal_and_everything_else_as_data",
    "FR-7.2": "conversation/test_ollm_requirements::test_what_is_about_the_goal_comes_first",
    "FR-7.3": f"{GOALS}::test_the_prompt_has_the_goal_word_for_word_and_every_locked_decision",
    "FR-7.4": f"{GOALS}::test_progress_is_the_share_of_completed_steps",
    "FR-7.5": f"{CONTEXT}::test_a_marker_of_the_model_changes_the_goal_of_the_home",
    "FR-8.1": f"{CONTEXT}::test_calls_stay_with_their_results_and_recent_users_stay_whole",
    "FR-8.2": f"{CONTEXT}::test_what_left_the_context_is_found_by_its_number",
    "FR-8.3": f"{SUMMARIES}::test_facts_come_before_the_words_around_them",
    "FR-8.4": f"{SOAK}::test_hundreds_of_turns_go_on",
    "FR-8.5": f"{CONTEXT}::test_the_prefix_is_the_same_between_two_compressions",
    "FR-9.1": f"{SHELL}::test_at_a_terminal_a_reply_is_ended_and_ctrl_c_twice_leaves",
    "FR-9.2": f"{SHELL}::test_a_full_window_is_compressed_and_said",
    "FR-9.3": f"{CONTEXT}::test_a_compression_reports_six_stages_and_can_be_undone",
    "FR-9.4": f"{CHAT}::test_the_input_is_blocked_while_a_chat_compresses_and_at_no_other_time",
    "FR-9.5": f"{SHELL}::test_a_full_window_is_compressed_and_said",
    "FR-10.1": f"{DEFECTS}::test_defect_03_emergency_actions_change_what_they_say",
    "FR-10.2": f"{DEFECTS}::test_defect_03_emergency_actions_change_what_they_say",
    "FR-10.3": f"{DEFECTS}::test_defect_06_changes_of_the_window_and_the_mode_reach_everything",
    "FR-10.4": f"{CONTEXT}::test_a_message_larger_than_the_window_is_sent_shortened_and_kept_whole",
    "FR-10.5": f"{DEFECTS}::test_defect_14_nothing_is_removed_without_a_snapshot",
    "FR-11.1": f"{DEFECTS}::test_defect_17_budgets_grow_with_the_window",
    "FR-11.2": f"{DEFECTS}::test_defect_08_strategies_differ",
    "FR-11.3": f"{LAWS}::test_a_conversation_holds_all_laws_whatever_happens",
    "FR-11.4": f"{DEFECTS}::test_defect_06_changes_of_the_window_and_the_mode_reach_everything",
    "FR-11.5": f"{CONTEXT}::test_fifteen_checkpoints_stay_in_their_budget",
    "FR-12.1": f"{SUMMARIES}::test_the_mode_decides_what_is_never_compressed",
    "FR-12.2": f"{DEFECTS}::test_defect_06_changes_of_the_window_and_the_mode_reach_everything",
    "FR-12.3": f"{SUMMARIES}::test_a_model_is_asked_with_level_mode_and_goal_and_everything_else_as_data",
    "FR-12.4": f"{SUMMARIES}::test_code_of_the_newest_messages_and_of_locked_decisions_stays_in_developer_mode",
    "FR-12.5": f"{DEFECTS}::test_defect_16_rules_find_their_examples_all_of_them",
    "FR-13.1": "conversation/test_ollm_requirements::test_larger_models_are_trusted_more_and_for_longer",
    "FR-13.2": "conversation/test_ollm_requirements::test_larger_models_are_trusted_more_and_for_longer",
    "FR-13.3": "conversation/test_ollm_requirements::test_larger_models_are_trusted_more_and_for_longer",
    "FR-13.4": f"{CONTEXT}::test_a_model_without_tools_is_sent_none_and_reads_calls_and_results_as_text",
    "FR-13.5": f"{CHAT}::test_the_model_and_the_window_may_change_in_the_middle",
    "FR-14.1": f"{CONTEXT}::test_profiles_of_ollm_are_read_and_not_computed",
    "FR-14.2": f"{CONTEXT}::test_profiles_of_ollm_are_read_and_not_computed",
    "FR-14.3": f"{CONTEXT}::test_a_message_is_compressed_at_the_share_of_the_configuration",
    "FR-14.4": f"{CONTEXT}::test_an_overflow_makes_the_context_smaller_and_a_lost_connection_does_not",
    "FR-14.5": f"{CHAT}::test_messages_of_another_format_are_sent_as_chat_completions",
    "FR-15.1": f"{GOALS}::test_the_prompt_has_the_goal_word_for_word_and_every_locked_decision",
    "FR-15.2": f"{SUMMARIES}::test_a_model_is_asked_with_level_mode_and_goal_and_everything_else_as_data",
    "FR-15.3": f"{GOALS}::test_a_marker_is_read_whatever_its_dress",
    "FR-15.4": f"{GOALS}::test_markers_complete_steps_lock_decisions_and_record_files",
    "FR-15.5": "conversation/test_ollm_requirements::test_what_is_about_the_goal_comes_first",
    "FR-16.1": f"{CONTEXT}::test_a_prompt_is_system_then_checkpoints_then_recent_then_new",
    "FR-16.2": f"{CONTEXT}::test_the_prefix_is_the_same_between_two_compressions",
    "FR-16.3": f"{CONTEXT}::test_a_prompt_is_system_then_checkpoints_then_recent_then_new",
    "FR-16.4": f"{CONTEXT}::test_a_prompt_is_system_then_checkpoints_then_recent_then_new",
    "FR-16.5": f"{CONTEXT}::test_a_prompt_is_system_then_checkpoints_then_recent_then_new",
    "NFR-1.1": "../benchmarks/context_facts::times",
    "NFR-1.2": f"{CONTEXT}::test_validation_suggests_by_priority_with_estimates_and_counts_nothing_again",
    "NFR-1.3": "../benchmarks/context_facts::times",
    "NFR-1.4": f"{CHAT}::test_the_input_is_blocked_while_a_chat_compresses_and_at_no_other_time",
    "NFR-1.5": f"{SOAK}::test_hundreds_of_turns_go_on",
    "NFR-2.1": "soak/test_context_replay::test_real_conversations_are_sent_whatever_the_window",
    "NFR-2.2": f"{SUMMARIES}::test_a_rejected_answer_is_followed_by_the_built_in_text",
    "NFR-2.3": f"{CONTEXT}::test_two_processes_on_one_conversation_lose_nothing",
    "NFR-2.4": f"{CRASH}::test_a_fault_at_any_call_leaves_the_steps_before_it_and_a_context_that_goes_on",
    "NFR-2.5": f"{SOAK}::test_hundreds_of_turns_go_on",
    "NFR-3.1": "test_architecture::test_arrows_point_down",
    "NFR-3.2": "test_init::test_a_public_function_is_documented_and_takes_a_home",
    "NFR-3.3": "conversation/test_ollm_requirements::test_every_line_has_a_test",
    "NFR-3.4": f"{CONTEXT}::test_every_event_of_a_context_is_in_the_table",
    "NFR-3.5": "test_architecture::test_most_functions_are_short",
    "NFR-4.1": f"{GOALS}::test_only_a_paused_goal_starts_and_only_the_current_one_pauses",
    "NFR-4.2": f"{CHAT}::test_a_long_chat_over_a_server_with_a_hard_window_is_never_refused",
    "NFR-4.3": f"{LAWS}::test_many_conversations_hold_them",
    "NFR-4.4": f"{CONTEXT}::test_two_hundred_checkpoints_stay_in_their_budget",
    "NFR-4.5": f"{CRASH}::test_a_fault_at_any_call_leaves_the_steps_before_it_and_a_context_that_goes_on",
}  # fmt: skip


def test_every_line_has_a_test():
    missing = []
    for line, test in SHOWN_BY.items():
        module, _, name = test.partition("::")
        path = ROOT / "tests" / f"{module}.py"
        if not path.is_file() or f"def {name}(" not in path.read_text(encoding="utf-8"):
            missing.append(f"{line}: {test}")
    assert missing == []


@pytest.mark.skipif(not REQUIREMENT.exists(), reason="the requirement is not on this machine")
def test_no_line_is_left_out():
    words = REQUIREMENT.read_text(encoding="utf-8")
    lines = set(re.findall(r"^- (N?FR-\d+\.\d+):", words, re.MULTILINE))
    stories = set(re.findall(r"^### (US-\d+):", words, re.MULTILINE))
    assert lines | stories == SHOWN_BY.keys()


@rows("thing", ["payment gateway", "garden shed"])
def test_what_is_about_the_goal_comes_first(thing):
    said = [
        f"The {one} keeps its papers in one drawer of the cellar."
        for one in ("payment gateway", "garden shed")
    ]
    read = convert.read([{"role": "assistant", "content": one} for one in said])

    source = Source(read, "", "assistant", f"Goal: make the {thing} reliable")

    assert thing in levels.extract(source, level=3, most=14, count=estimate)


@rows(
    ("model", "factor", "warns_after"),
    [("phi:3b", 0.3, 3), ("llama3:7b", 0.5, 5), ("gemma:13b", 0.7, 7), ("yi:34b", 0.85, 10), ("llama3:70b", 0.95, 10)],
)  # fmt: skip
def test_larger_models_are_trusted_more_and_for_longer(model, factor, warns_after):
    assert modes.reliability(model, 0).value == factor
    assert modes.reliability(model, 5).value == pytest.approx(factor * 0.9**5, abs=1e-4)
    assert [modes.reliability(model, nth).warn for nth in (warns_after - 1, warns_after)] == [False, True]


def test_the_names_that_are_fixed_work_as_they_are_written(home):
    aether.open_context("c", window=None, model=None, mode="assistant", system="", home=home)
    aether.open_context("c", window=8_192, home=home)
    for nth in range(40):
        role = ("user", "assistant")[nth % 2]
        aether.add_message("c", {"role": role, "content": text(nth)}, home=home)
    done = aether.compress_context("c", backend=None, progress=None, home=home)
    prompt, validation = aether.build_prompt("c", home=home), aether.validate_context("c", home=home)

    assert done.success
    assert prompt.tokens <= prompt.limit
    assert prompt.messages
    for name in ("valid", "tokens", "limit", "overage", "suggestions"):
        assert hasattr(validation, name)
    for one in aether.checkpoints("c", home=home):
        for name in ("id", "level", "tokens", "compression_number", "message_range", "summary"):
            assert hasattr(one, name)
    order = [*inspect.signature(aether.open_context).parameters]
    assert order[:5] == ["conversation_id", "window", "model", "mode", "system"]


def test_the_commands_that_are_fixed_work_as_they_are_written(home, capsys, monkeypatch):
    monkeypatch.chdir(home.parent)

    def run(*words):
        assert main(list(words)) == 0
        return capsys.readouterr().out

    assert run("goal", "add", "Ship the index.")
    assert "You said: Hello" in run("chat", "c", "--backend", "echo", "--message", "Hello")
    assert json.loads(run("context", "status", "--checkpoints", "c", "--json")) == []
    status = json.loads(run("context", "status", "c", "--json"))
    assert status["tokens"] <= status["limit"]
    assert status["metrics"]["misses"] == 2
    assert "Hello" in run("export", "c", "--format", "markdown")
    assert json.loads(run("export", "c", "--format", "json"))["metadata"]["totalMessages"] == 2
