from typing import get_args

from aether.messages.model import PROVIDER_FORMATS, Block, Message, ProviderFormat


def test_a_message_says_what_its_text_blocks_say():
    blocks = (Block("text", "One."), Block("reasoning", "Hm."), Block("text", "Two."), Block("result", "ok"))

    assert Message("assistant", blocks, {}, "plain").text == "One.\nTwo."
    assert Message("user", (), {}, "plain").text == ""


def test_the_wires_are_those_of_the_type():
    assert get_args(ProviderFormat) == PROVIDER_FORMATS
