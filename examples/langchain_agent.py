"""A LangChain agent whose thread outgrows its window; here a fake stands for the model."""

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

from aether.integrations.langchain import compaction_middleware

model = FakeListChatModel(responses=["Mites matter, and so does the weather. " * 30])
compaction = compaction_middleware(window=3_000)
agent = create_agent(model, middleware=[compaction], checkpointer=InMemorySaver())
for nth in range(20):
    question = {"messages": [{"role": "user", "content": f"What of paper {nth}?"}]}
    state = agent.invoke(question, {"configurable": {"thread_id": "bees"}})

from aether.operations.compaction_views import conversation_list  # noqa: E402 - what was done, for the print below

(kept,) = conversation_list()
print(
    "the state is whole:",
    len(state["messages"]),
    "- compactions:",
    kept.compactions > 1,
    "- thread:",
    kept.conversation,
)
