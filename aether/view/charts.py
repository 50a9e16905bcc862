"""Charts: numbers of a home as SVG with a title, a description and the same numbers as a table; and the report with them.

`leather` draws them, and is imported when the first one is drawn. An SVG holds no style, no script and no address, and
its colours are classes (`series-0` …), so that it follows the page into dark mode and print, under a policy that allows
nothing inline. The report is one HTML file: its style is in it, and it forbids a browser to load or run anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aether.api.report import in_words
from aether.errors import BackendUnavailable
from aether.types import JsonObject
from aether.view.frame import environment, plural, visible

WIDTH, HEIGHT, BAR_HEIGHT = 640, 240, 34
# For the second half of the last label.
MARGIN = 30
# Lines of one chart that differ visibly, also without colours, by their order in the legend.
MOST_SERIES = 6
NAME_CHARS = 36
# Any six different colours: each becomes a class.
_COLOURS = [f"#00000{nth}" for nth in range(1, MOST_SERIES + 1)]
_LONG_NUMBER = re.compile(r"(\d+\.\d)\d+")
_SVG = "http://www.w3.org/2000/svg"


class Chart(NamedTuple):
    """A chart, and its numbers as a table."""

    title: str
    description: str
    svg: str
    """Empty without numbers."""
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def layers_chart(layers: Sequence[JsonObject]) -> Chart:
    """Return how full each layer is, in percent of its limit."""
    rows = [
        (layer["name"], f"{layer['used']:,}", f"{layer['most']:,} {layer['unit']}", f"{layer['percent']:g} %")
        for layer in layers
    ]
    fullest = max(layers, key=lambda layer: layer["percent"], default={"name": "No layer", "percent": 0})
    title, text = "Fill of the layers", f"{fullest['name']} is the fullest, at {fullest['percent']:g} %."
    if not layers:
        return Chart(title, text, "", ("layer", "used", "limit", "share"), rows)
    chart = _empty()
    chart.add_bars([(layer["percent"], layer["name"]) for layer in layers], fill_color=_COLOURS[0])
    chart.add_x_scale(0, 100)
    chart.add_x_axis(ticks=[0, 25, 50, 75, 100], tick_formatter=lambda value, *_: f"{value:g} %")
    svg = _svg(chart, title, text, height=70 + BAR_HEIGHT * len(layers))
    return Chart(title, text, svg, ("layer", "used", "limit", "share"), rows)


def saved_chart(saved: Sequence[JsonObject]) -> Chart:
    """Return the tokens that compressions and compactions saved, summed up over time."""
    title, head = "Tokens saved", ("time (UTC)", "by", "before", "after", "saved in all")
    rows = [
        (
            saving["at"][:16].replace("T", " "),
            saving["kind"],
            f"{saving['before']:,}",
            f"{saving['after']:,}",
            f"{saving['sum']:,}",
        )
        for saving in saved
    ]
    if not saved:
        return Chart(title, "Nothing was compressed or compacted yet.", "", head, rows)
    text = f"{len(saved)} compressions and compactions saved {saved[-1]['sum']:,} tokens."
    chart = _empty()
    chart.add_line(
        [(0, 0), *((nth, saving["sum"]) for nth, saving in enumerate(saved, 1))], stroke_color=_COLOURS[0]
    )
    ticks = sorted({0, len(saved) // 2, len(saved)})
    labels = {0: "start"} | dict(
        zip(ticks[1:], _distinct([saved[tick - 1]["at"] for tick in ticks[1:]]), strict=True)
    )
    chart.add_x_axis(ticks=ticks, tick_formatter=lambda value, *_: labels.get(int(value), ""))
    chart.add_y_axis(tick_formatter=lambda value, *_: f"{int(value):,}")
    return Chart(title, text, _svg(chart, title, text), head, rows)


def _distinct(times: Sequence[str]) -> list[str]:
    """Return short labels of times that differ where the times do.

    >>> _distinct(["2026-03-01T10:15:00Z", "2026-03-02T10:15:00Z"]), _distinct(["2026-03-01T10:15:00Z", "2026-03-01T11:40:00Z"])
    (['2026-03-01', '2026-03-02'], ['03-01 10:15', '03-01 11:40'])
    """
    days = [time[:10] for time in times]
    return days if len(set(days)) == len(days) else [time[5:16].replace("T", " ") for time in times]


def injected_chart(sessions: Sequence[JsonObject]) -> Chart:
    """Return the tokens of memory that each session was given; each has `name` and `tokens`, the newest first."""
    title, head = "Tokens of memory given to each session", ("session", "tokens")
    rows = [(session["name"], f"{session['tokens']:,}") for session in sessions]
    if not any(session["tokens"] for session in sessions):
        return Chart(title, "No session was given memory yet.", "", head, rows)
    total = sum(session["tokens"] for session in sessions)
    text = f"{plural(total, 'tokens')} in {plural(len(sessions), 'sessions')}, the newest first."
    chart = _empty()
    names = [
        visible(session["name"].encode("utf-8", "replace").decode())[:NAME_CHARS] for session in sessions
    ]
    bars = [
        (session["tokens"], f"{nth}. {name}")
        for nth, (session, name) in enumerate(zip(sessions, names, strict=True), 1)
    ]
    chart.add_bars(bars, fill_color=_COLOURS[0])
    chart.add_x_scale(0, max(session["tokens"] for session in sessions))
    chart.add_x_axis(tick_formatter=lambda value, *_: f"{int(value):,}")
    return Chart(title, text, _svg(chart, title, text, height=70 + BAR_HEIGHT * len(sessions)), head, rows)


def signals_chart(signals: Sequence[JsonObject]) -> Chart:
    """Return the strength of signals over time, in hours from now; each has `name`, `half_life`, `strength`, `points`."""
    title, head = "Strength of signals", ("signal", "strength now", "half-life")
    # XML has no place for control characters and lone surrogates.
    signals = [
        signal | {"name": visible(signal["name"].encode("utf-8", "replace").decode())} for signal in signals
    ]
    rows = [(signal["name"], f"{signal['strength']:.2f}", signal["half_life"]) for signal in signals]
    if not signals:
        return Chart(title, "No signal is active.", "", head, rows)
    strongest = signals[:MOST_SERIES]
    text = f"{signals[0]['name']} is the strongest now, at {signals[0]['strength']:.2f}."
    chart = _empty()
    chart.add_y_scale(0, 1)
    chart.add_y_axis(ticks=[0, 0.25, 0.5, 0.75, 1], tick_formatter=lambda value, *_: f"{value:g}")
    for signal, colour in zip(strongest, _COLOURS, strict=False):
        name = signal["name"] if len(signal["name"]) <= NAME_CHARS else signal["name"][: NAME_CHARS - 1] + "…"
        chart.add_line(signal["points"], name=name, stroke_color=colour)
    hours = [int(point[0]) for signal in strongest for point in signal["points"]]
    chart.add_x_scale(min(hours), max(hours) + (min(hours) == max(hours)))
    chart.add_x_axis(
        ticks=sorted({min(hours), 0, max(hours)}),
        tick_formatter=lambda value, *_: "now" if not value else f"{int(value):+} h",
    )
    return Chart(title, text, _svg(chart, title, text), head, rows)


def _empty() -> Any:
    try:
        import leather
    except ImportError as reason:
        raise BackendUnavailable(
            "the package leather is not installed.",
            fix="Run: pip install '.[view]' in a clone of aether",
            where="charts",
        ) from reason
    leather.theme.legend_font_char_width = 7
    return leather.Chart("")


def _svg(chart: Any, title: str, description: str, *, height: int = HEIGHT) -> str:
    """Return a drawn chart as an image with a name, without colours, fonts and a background of its own."""
    from xml.etree import ElementTree as ET

    ET.register_namespace("", _SVG)
    root = ET.fromstring(chart.to_svg(width=WIDTH, height=height))  # noqa: S314 - drawn just now, by us
    name = "chart-" + re.sub(r"\W+", "-", title.casefold())
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {
        "viewBox": f"0 0 {WIDTH + MARGIN} {height}", "role": "img", "class": "chart", "focusable": "false",
        "aria-labelledby": f"{name} {name}-text",
    }  # fmt: skip
    for parent in list(root.iter()):
        for child in list(parent):
            if child.get("fill") == "#f9f9f9":
                parent.remove(child)
    for element in root.iter():
        _restyle(element.attrib)
    for nth, (tag, place, words) in enumerate(
        (("title", name, title), ("desc", f"{name}-text", description))
    ):
        label = ET.Element(f"{{{_SVG}}}{tag}", {"id": place})
        label.text = words
        root.insert(nth, label)
    return ET.tostring(root, encoding="unicode")


def _restyle(attributes: dict[str, str]) -> None:
    """Put classes in the place of the colours of an element."""
    attributes.pop("font-family", None)
    attributes |= {name: _LONG_NUMBER.sub(r"\1", value) for name, value in attributes.items()}
    for field, words in (("stroke", "line"), ("fill", "area")):
        colour = attributes.get(field, "none")
        if colour in _COLOURS:
            del attributes[field]
            attributes["class"] = f"{words} series-{_COLOURS.index(colour)}"
        elif colour != "none":
            del attributes[field]
            attributes["class"] = "grid" if field == "stroke" else "label"


def charts_of(report: Mapping[str, Any]) -> list[Chart]:
    """Return the charts of a report of `api.report`."""
    drawn: tuple[tuple[str, Callable[[Any], Chart]], ...] = (
        ("layers", layers_chart), ("saved", saved_chart), ("signals", signals_chart),
    )  # fmt: skip
    return [draw(report["charts"][name]) for name, draw in drawn]


def as_html(found: Mapping[str, Any], *, redacted: bool = True) -> str:
    """Return a report as a whole HTML document; `redacted` says in it whether secrets were replaced.

    Raises:
        BackendUnavailable: the extra `view` is not installed.
    """
    try:
        template = environment().get_template("report.html")
    except ImportError as reason:
        raise BackendUnavailable(
            f"the package {reason.name or 'jinja2'} is not installed.",
            fix="Run: pip install '.[view]' in a clone of aether, or use --format markdown, which needs nothing.",
            where="report",
        ) from reason
    return str(
        template.render(
            found=found, happened=in_words(found["counts"]), drawn=charts_of(found), redacted=redacted
        )
    )
