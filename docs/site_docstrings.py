"""An extension of the site's reader of docstrings: examples at the end of a docstring are shown as a terminal session."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Examples(Extension):
    """Fences each example of a docstring, which Markdown would take for a quotation."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
