"""Former place of `repair` in `aether.messages.validate`, kept importable for one release."""

from aether.messages.validate import Repaired, repair  # noqa: F401
