"""A LangChain agent whose thread outgrows its window; here a fake plays the model."""

import tempfile

try:
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeListChatModel
    from langgraph.checkpoint.memory import InMemorySaver
except ImportError:
    raise SystemExit(
        "This example needs langchain: pip install '.[langchain]' in a clone of aether"
    ) from None

import aether
from aether.frameworks.langchain import compaction_middleware

home = aether.init(tempfile.mkdtemp())
model = FakeListChatModel(responses=["Mites matter, and so does the weather. " * 30])
compaction = compaction_middleware(window=3_000, home=home)
agent = create_agent(model, middleware=[compaction], checkpointer=InMemorySaver())
for nth in range(20):
    question = {"messages": [{"role": "user", "content": f"What of paper {nth}?"}]}
    state = agent.invoke(question, {"configurable": {"thread_id": "bees"}})

(kept,) = (one for one in aether.conversation_list(home=home) if one.conversation == "bees")
print("the state is whole:", len(state["messages"]), "- compactions:", kept.compactions > 1)
after = aether.compaction_diff("bees", home=home).after
print(next(one["content"] for one in after if "<COMPACT-SUMMARY" in str(one)))
