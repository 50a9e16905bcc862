"""An agent of the OpenAI Agents SDK whose session outgrows its window; here a script plays the model."""

import tempfile

try:
    from agents import Agent, RunConfig, Runner, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message
except ImportError:
    raise SystemExit(
        "This example needs openai-agents: pip install '.[agents]' in a clone of aether"
    ) from None

import aether
from aether.frameworks.openai_agents import AetherSession, compaction_filter

set_tracing_disabled(True)
model = ScriptedModel([[assistant_message(f"Chapter {nth} is about ants. " * 40)] for nth in range(20)])
agent = Agent(name="reader", model=model)

# start: all that compaction takes
session = AetherSession("book-club", home=aether.init(tempfile.mkdtemp()))
config = RunConfig(call_model_input_filter=compaction_filter(session, window=3_000))
for nth in range(20):
    Runner.run_sync(agent, f"Read chapter {nth}.", session=session, run_config=config)
# end

sent = model.calls[-1].input
print(len(sent), "items are sent instead of 39; the first:", sent[0]["content"])
print("and the summary of what is not sent:")
print(next(item["content"] for item in sent if "<COMPACT-SUMMARY" in str(item)))
