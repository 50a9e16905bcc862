"""Former place of `aether.messages.convert`, kept importable for one release."""

from aether.messages.convert import bare, convert, message, read, with_text, without_reasoning  # noqa: F401
