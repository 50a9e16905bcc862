"""The recording in the README: the real output of `aether demo` as an animated picture."""

from __future__ import annotations

import re
from html import escape

from click.testing import CliRunner

from aether.cli.main import cli

COLUMNS, LINE, CHARACTER, MARGIN = 80, 19, 8.43, 14
# Seconds: before the first line, between lines, and before each numbered step, which a reader takes in first.
START, EACH, STEP = 1.2, 0.15, 2.4
STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}"
    ".head{fill:#82aaff;font-weight:bold}.typed{fill:#c3e88d}"
    "@keyframes show{from{opacity:0}to{opacity:1}}"
    "@media(prefers-reduced-motion:no-preference){text{animation:show .1s both}}"
)


def picture() -> str:
    """Return the demo as an SVG whose lines appear once, within half a minute.

    Without animation, and for a reader who prefers reduced motion, all lines are there at once.
    """
    lines = CliRunner().invoke(cli, ["demo"], catch_exceptions=False).output.rstrip("\n").split("\n")
    height = (len(lines) + 2) * LINE + 2 * MARGIN
    width = round(COLUMNS * CHARACTER) + 2 * MARGIN
    shown = [_line(0, "$ aether demo", "typed", 0)]
    at = START
    for number, line in enumerate(lines, 2):
        is_step = bool(re.match(r"\d\. |Next:", line))
        at += STEP if is_step else EACH
        if line:
            shown.append(_line(number, line, "head" if is_step else "", at))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="title">',
            '<title id="title">The output of aether demo, line by line</title>',
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1b2230"/>',
            *shown,
            "</svg>",
            "",
        ]
    )


def _line(number: int, text: str, kind: str, at: float) -> str:
    y = MARGIN + (number + 1) * LINE - 5
    marked = f' class="{kind}"' if kind else ""
    # The width is set, so that columns stay in line in any font.
    length = round(len(text) * CHARACTER, 1)
    return (
        f'<text x="{MARGIN}" y="{y}" textLength="{length}"{marked} style="animation-delay:{at:.1f}s" '
        f'xml:space="preserve">{escape(text, quote=False)}</text>'
    )
