"""The memory tool of Anthropic's SDK over a home; a function on this machine plays the model."""

import json
import tempfile

import anthropic
import httpx2

import aether
from aether.frameworks.memory_tool import AetherMemoryTool

NOTE = {"command": "create", "path": "/memories/ants.md", "file_text": "Ants carry fifty times their weight."}


def model(request: httpx2.Request) -> httpx2.Response:
    asked = json.loads(request.content)["messages"]
    call = {"type": "tool_use", "id": "call", "name": "memory", "input": NOTE}
    said = call if len(asked) == 1 else {"type": "text", "text": asked[-1]["content"][0]["content"]}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [said]}
    message["stop_reason"] = "tool_use" if said is call else "end_turn"
    return httpx2.Response(200, json={**message, "usage": {"input_tokens": 1, "output_tokens": 1}})


home = aether.init(tempfile.mkdtemp())
client = anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(model)))
asked = {"model": "claude-haiku-5-5", "max_tokens": 500, "messages": [{"role": "user", "content": "Ants?"}]}
runner = client.beta.messages.tool_runner(**asked, tools=[AetherMemoryTool(home)], thread=False)
print(runner.until_done().content[0].text)
print((home / "memories/ants.md").read_text())
print("undid:", aether.undo(home=home).operation)
