"""A LangChain agent whose thread outgrows its window; here a fake plays the model."""

try:
    from langchain.agents import create_agent
    from langchain_core.language_models import FakeListChatModel
    from langgraph.checkpoint.memory import InMemorySaver
except ImportError:
    raise SystemExit("This example needs langchain: pip install 'aether-memory[langchain]'") from None

from aether import compaction_diff, conversation_list
from aether.integrations.langchain import compaction_middleware

model = FakeListChatModel(responses=["Mites matter, and so does the weather. " * 30])
compaction = compaction_middleware(window=3_000)
agent = create_agent(model, middleware=[compaction], checkpointer=InMemorySaver())
for nth in range(20):
    question = {"messages": [{"role": "user", "content": f"What of paper {nth}?"}]}
    state = agent.invoke(question, {"configurable": {"thread_id": "bees"}})

(kept,) = (one for one in conversation_list() if one.conversation == "bees")
print("the state is whole:", len(state["messages"]), "- compactions:", kept.compactions > 1)
print(next(one["content"] for one in compaction_diff("bees").after if "<COMPACT-SUMMARY" in str(one)))
