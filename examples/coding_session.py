"""A coding session: a policy that nothing may touch, a preflight before each call, and /compact by hand."""

import tempfile

import aether
from aether.compat.compact_manager import CompactManager, Message, mark_protected
from aether.conversation.policy import CompactConfig

# telemetry_exporter="ariadne" with ariadne_url=... would show the decisions in a viewer.
home = aether.init(tempfile.mkdtemp())
config = CompactConfig(max_context_tokens=4_000, storage_path=str(home / "copies"))
manager = CompactManager(config, home=home)
policy = mark_protected("Never change the public API. Never force-push.", label="policy")
messages = [policy, Message("user", "Port the parser to Rust.")]
compactions = 0
for step in range(40):
    answer = f"Decided to keep src/m{step}.rs small. " + "It parses one rule. " * 20
    messages += [Message("user", f"Now module {step}."), Message("assistant", answer)]
    result = manager.preflight("port", messages)
    messages = result.messages
    compactions += result.was_triggered

by_hand = manager.manual_compact("port", messages, note="/compact")
print("compacted on the way:", compactions > 1, "- by hand, tokens fewer by 40 % or more:", end=" ")
print(by_hand.tokens_after <= 0.6 * by_hand.tokens_before)
print("the policy is the very same message:", by_hand.messages[0] is policy)
print("the goal is still there:", any(message.content == "Port the parser to Rust." for message in by_hand))
print("and the summary:")
print(by_hand.summary.content)
