"""A hook of the site: links to files of the repository that are not pages become their text: the site has no other files."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page without links to files beside `docs/`."""
    return _OUTSIDE.sub(r"\1", markdown)
