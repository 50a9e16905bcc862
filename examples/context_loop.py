"""A chat that goes on for ever: each prompt fits the window, whatever was said before."""

import tempfile

import aether

home = aether.init(tempfile.mkdtemp())
aether.open_context("book-club", window=4_096, system="Be brief.", home=home)
for nth in range(60):
    aether.add_message("book-club", {"role": "user", "content": f"What happens in chapter {nth}?"}, home=home)
    prompt = aether.build_prompt("book-club", home=home)  # prompt.messages is what you send
    answer = f"In chapter {nth} the ants decided to move to hill {nth}, because of the rain. " * 9
    aether.add_message("book-club", {"role": "assistant", "content": answer}, home=home)

system, checkpoint, *recent = prompt.messages
print("fits:", prompt.tokens <= prompt.limit, "- first:", system["content"], "- whole:", len(recent) < 60)
print(checkpoint["content"].partition(":")[0])
