"""Markdown as HTML for a page: safe by construction, and without a request to anywhere.

markdown-it-py renders it without raw HTML. A picture becomes its description, and a link to anything but a website or
a mail address stays text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aether.memory.layers import excerpt

if TYPE_CHECKING:
    from markupsafe import Markup

# Characters of a text in a list.
MOST_GIST = 300
# Fences with their language, and the marks before a heading.
_MARKS = re.compile(r"^[ \t]*(?:(?:```|~~~)[^`\n]*$|#{1,6}[ \t]+)", re.MULTILINE)
_STRESS = re.compile(r"(?<!\w)\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?!\w)")


@lru_cache(maxsize=2)
def _renderer(preset: str) -> Any:
    from markdown_it import MarkdownIt

    if preset == "codes":
        return MarkdownIt("zero").enable("backticks")
    renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    renderer.disable("reference")  # the definition of a link, with its title, would not be on the page
    renderer.validateLink = lambda url: url.lower().startswith(("https://", "http://", "mailto:"))  # type: ignore[method-assign]
    renderer.add_render_rule("image", _picture)
    renderer.add_render_rule("link_open", _link)
    return renderer


def _picture(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:  # noqa: ARG001
    """Return the description of a picture with its address: the page loads nothing from elsewhere."""
    from markupsafe import escape

    token = tokens[index]
    return f"[picture: {escape(token.content or 'without a description')}]"


def _link(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    """Return the start of a link whose site learns nothing about this page."""
    tokens[index].attrSet("rel", "noreferrer noopener nofollow")
    return str(self.renderToken(tokens, index, options, env))


def markdown(text: str) -> Markup:
    """Return Markdown as HTML; its headings are below those of the page."""
    renderer = _renderer("messages")
    tokens = renderer.parse(text)
    deepest = renderer.options["maxNesting"] - 1
    if any(token.nesting == 1 and token.level >= deepest for token in tokens):
        # What is nested deeper is not parsed, and a reader would not see it.
        from markupsafe import Markup

        return Markup("<pre><code>{}</code></pre>").format(text)
    for token in tokens:
        token.attrs.pop(
            "style", None
        )  # the alignment of a column: the policy of the page allows no inline style
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return _safe(renderer.renderer.render(tokens, renderer.options, {}))


def codes(text: Any) -> Markup:
    """Return text as HTML in which words between backticks are code; everything else stays as it is."""
    from markupsafe import escape

    words = str(text)
    if "`" not in words:
        return escape(words)
    return _safe(_renderer("codes").renderInline(words))


def gist(text: str, most: int = MOST_GIST) -> str:
    r"""Return the start of a Markdown text on one line, without the marks that only fence, head or stress.

    >>> gist("## Done\n\n**Two** options:\n```sh\nmake `all`\n```")
    'Done Two options: make `all`'
    >>> gist("Never pass **kwargs of a call to 2**3 things.")
    'Never pass **kwargs of a call to 2**3 things.'
    """
    return excerpt(_STRESS.sub(r"\1", _MARKS.sub("", text[: most * 8])), most)


def _safe(html: str) -> Markup:
    """Return what the renderer wrote as markup, with each apostrophe escaped as everywhere else on a page."""
    from markupsafe import Markup

    return Markup(html.replace("'", "&#39;"))  # noqa: S704 - raw HTML is off
