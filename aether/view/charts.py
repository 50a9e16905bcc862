"""Charts: numbers of a home as SVG with a title, a description and the same numbers as a table; and the report with them.

`leather` draws them, and is imported when the first one is drawn. An SVG holds no style, no script and no address, and
its colours are classes (`series-0` …), so that it follows the page into dark mode and print, under a policy that allows
nothing inline. The report is one HTML file: its style is in it, and it forbids a browser to load or run anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import count
from math import ceil
from typing import Any, NamedTuple

from aether.api.home import read, redaction_rules
from aether.api.report import in_words, numbers
from aether.errors import packages_of
from aether.types import JsonObject
from aether.view.frame import Asked, Frame, Page, Shown, environment, later, plural, visible, when

WIDTH, HEIGHT, BAR_HEIGHT = 480, 220, 34
# For the second half of the last label.
MARGIN = 30
# Lines of one chart that differ visibly, also without colours, by their order in the legend.
MOST_SERIES = 6
NAME_CHARS = 26
# Days of which a chart has bars; its table has all.
MOST_DAYS = 14
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
    text = f"{fullest['name']} is the fullest, at {fullest['percent']:g} %."
    table = Chart("Fill of the layers", text, "", ("layer", "used", "limit", "share"), rows)
    return _bars(table, [(layer["percent"], layer["name"]) for layer in layers], percent=True)


def saved_chart(saved: Sequence[JsonObject]) -> Chart:
    """Return the tokens that compressions and compactions saved, summed up over time."""
    head = ("time (UTC)", "by", "before", "after", "saved in all")
    rows = [
        (when(saving["at"]), saving["kind"], f"{saving['before']:,}", f"{saving['after']:,}", f"{saving['sum']:,}")
        for saving in saved
    ]  # fmt: skip
    table = Chart("Tokens saved", "Nothing was compressed or compacted yet.", "", head, rows)
    if not saved:
        return table
    text = f"Compressing and compacting saved {saved[-1]['sum']:,} tokens in {plural(len(saved), 'steps')}."
    ticks = sorted({(len(saved) + 1) // 2, len(saved)})
    labels = dict(zip(ticks, _distinct([saved[tick - 1]["at"] for tick in ticks]), strict=True))
    sums = [(0, 0), *enumerate((saving["sum"] for saving in saved), 1)]
    return _line(table._replace(description=text), sums, {0: "start"} | labels)


def growth_chart(growth: Sequence[JsonObject]) -> Chart:
    """Return the number of entries that were noted, summed up by day."""
    rows = [(day["day"], f"{day['entries']:,}", f"{day['sum']:,}") for day in growth]
    table = Chart(
        "Growth of memory", "No entry was noted yet.", "", ("day", "entries noted", "entries in all"), rows
    )
    if not growth:
        return table
    text = f"{plural(growth[-1]['sum'], 'entries')} noted on {plural(len(growth), 'days')}; those that left memory since are counted too."
    days = [date.fromisoformat(day["day"]).toordinal() for day in growth]
    labels = {
        day: date.fromordinal(day).isoformat() for day in (days[0], (days[0] + days[-1]) // 2, days[-1])
    }
    sums = [(day, entry["sum"]) for day, entry in zip(days, growth, strict=True)]
    before = (days[0] - 1, growth[0]["sum"] - growth[0]["entries"])
    return _line(table._replace(description=text), [before, *sums], labels)


def _distinct(times: Sequence[str]) -> list[str]:
    """Return short labels of times that differ where the times do.

    >>> _distinct(["2026-03-01T10:15:00Z", "2026-03-02T10:15:00Z"]), _distinct(["2026-03-01T10:15:00Z", "2026-03-01T11:40:00Z"])
    (['2026-03-01', '2026-03-02'], ['03-01 10:15', '03-01 11:40'])
    >>> _distinct(["2026-03-01T10:15:02Z", "2026-03-01T10:15:40Z"])
    ['10:15:02', '10:15:40']
    """
    days = [time[:10] for time in times]
    minutes = [time[5:16].replace("T", " ") for time in times]
    forms = (days, minutes, [time[11:19] for time in times])
    return next((labels for labels in forms if len(set(labels)) == len(labels)), minutes)


def injected_chart(sessions: Sequence[JsonObject]) -> Chart:
    """Return the tokens of memory that each session was given; each has `name` and `tokens`, the newest first."""
    rows = [(session["name"], f"{session['tokens']:,}") for session in sessions]
    total = sum(session["tokens"] for session in sessions)
    text = f"{plural(total, 'tokens')} in {plural(len(sessions), 'sessions')}, the newest first."
    if not total:
        text = "No session was given memory yet."
    table = Chart("Tokens of memory given to each session", text, "", ("session", "tokens"), rows)
    bars = [(session["tokens"], f"{nth}. {session['name']}") for nth, session in enumerate(sessions, 1)]
    return _bars(table, bars if total else [])


def recalls_chart(days: Sequence[JsonObject]) -> Chart:
    """Return which share of the questions to memory it had an answer to, by day."""
    head = ("day", "answered", "without an answer", "entries opened")
    rows = [
        (day["day"], f"{day['answered']:,}", f"{day['unanswered']:,}", f"{day['opened']:,}") for day in days
    ]
    asked = [day | {"asked": day["answered"] + day["unanswered"]} for day in days]
    total, hits, opened = (sum(day[name] for day in asked) for name in ("asked", "answered", "opened"))
    text = (
        f"Memory had an answer to {hits:,} of {total:,} prompts and searches, and {plural(opened, 'entries')} were opened whole. "
        "Whether an agent used a line that it was told is not recorded."
    )
    if not days:
        text = "Memory was asked nothing since aether counts that."
    bars = [
        (100 * day["answered"] / day["asked"], f"{day['day']}: {day['answered']:,} of {day['asked']:,}")
        for day in asked if day["asked"]
    ]  # fmt: skip
    return _bars(Chart("Hits of recall", text, "", head, rows), bars[-MOST_DAYS:][::-1], percent=True)


def architects_chart(days: Sequence[JsonObject]) -> Chart:
    """Return the tokens that models read and wrote for memory, by day."""
    head = ("day", "answers", "tokens read", "tokens written", "cost (USD)", "models")
    rows = [
        (
            day["day"], f"{day['answers']:,}", f"{day['input_tokens']:,}", f"{day['output_tokens']:,}",
            "not reported" if day["cost_usd"] is None else f"{day['cost_usd']:.4f}", ", ".join(day["models"]),
        )
        for day in days
    ]  # fmt: skip
    answers = sum(day["answers"] for day in days)
    bars = [(day["input_tokens"] + day["output_tokens"], day["day"]) for day in days]
    cost = sum(day["cost_usd"] or 0 for day in days)
    words = f", for {cost:.4f} USD as far as that was reported" if cost else "; no cost was reported"
    text = f"{plural(sum(tokens for tokens, _ in bars), 'tokens')} in {plural(answers, 'answers')}{words}."
    if not days:
        text = "No model was asked yet; the built-in architect costs nothing."
    return _bars(Chart("Cost of architects", text, "", head, rows), bars[-MOST_DAYS:][::-1])


def _bars(table: Chart, bars: Sequence[tuple[float, str]], *, percent: bool = False) -> Chart:
    """Return `table` with a drawing of bars, each a number and a label; none without bars."""
    if not bars:
        return table
    chart = _empty()
    chart.add_bars([(number, _name(label)) for number, label in bars], fill_color=_COLOURS[0])
    ticks = [0, 25, 50, 75, 100] if percent else _ticks(max(number for number, _ in bars))
    chart.add_x_scale(0, ticks[-1])
    chart.add_x_axis(
        ticks=ticks, tick_formatter=lambda value, *_: f"{value:g} %" if percent else f"{value:,}"
    )
    return table._replace(svg=_svg(chart, table.title, table.description, height=70 + BAR_HEIGHT * len(bars)))


def _line(table: Chart, points: Sequence[tuple[int, int]], labels: Mapping[int, str]) -> Chart:
    """Return `table` with a drawing of a line, and labels below some of its places."""
    chart = _empty()
    chart.add_line(points, stroke_color=_COLOURS[0])
    chart.add_x_axis(ticks=[*labels], tick_formatter=lambda value, *_: labels.get(int(value), ""))
    sums = [number for _, number in points]
    ticks = _ticks(max(sums))
    chart.add_y_scale(min(0, *sums), ticks[-1])
    chart.add_y_axis(ticks=ticks, tick_formatter=lambda value, *_: f"{value:,}")
    return table._replace(svg=_svg(chart, table.title, table.description))


def _ticks(most: float) -> list[int]:
    """Return up to six round numbers from 0 to `most` or beyond, so that no two labels are alike.

    >>> _ticks(0), _ticks(3), _ticks(1234)
    ([0, 1], [0, 1, 2, 3], [0, 500, 1000, 1500])
    """
    steps = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(step for step in steps if 5 * step >= most)
    return [*range(0, max(1, ceil(most / step)) * step + 1, step)]


def _clean(text: str) -> str:
    """Return a text without what XML has no place for: control characters and lone surrogates."""
    return str(visible(text.encode("utf-8", "replace").decode()))


def _name(text: str) -> str:
    """Return a text that a drawing has room for."""
    shown = _clean(text)
    return shown if len(shown) <= NAME_CHARS else f"{shown[: NAME_CHARS - 1]}…"


def signals_chart(signals: Sequence[JsonObject]) -> Chart:
    """Return the strength of signals over time, in hours from now; each has `name`, `half_life`, `strength`, `points`."""
    title, head = "Strength of signals", ("signal", "strength now", "half-life")
    rows = [(signal["name"], f"{signal['strength']:.2f}", signal["half_life"]) for signal in signals]
    if not signals:
        return Chart(title, "No signal is active.", "", head, rows)
    strongest = signals[:MOST_SERIES]
    text = f"{_clean(signals[0]['name'])} is the strongest now, at {signals[0]['strength']:.2f}."
    chart = _empty()
    chart.add_y_scale(0, 1)
    chart.add_y_axis(ticks=[0, 0.25, 0.5, 0.75, 1], tick_formatter=lambda value, *_: f"{value:g}")
    for signal, colour in zip(strongest, _COLOURS, strict=False):
        chart.add_line(signal["points"], name=_name(signal["name"]), stroke_color=colour)
    hours = [int(point[0]) for signal in strongest for point in signal["points"]]
    chart.add_x_scale(min(hours), max(hours) + (min(hours) == max(hours)))
    chart.add_x_axis(
        ticks=sorted({min(hours), 0, max(hours)}),
        tick_formatter=lambda value, *_: "now" if not value else f"{int(value):+} h",
    )
    return Chart(title, text, _svg(chart, title, text), head, rows)


def _empty() -> Any:
    with packages_of("view", where="charts"):
        import leather
    # Of the letters on a phone, the largest.
    leather.theme.legend_font_char_width = leather.theme.tick_font_char_width = 9
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


def charts_of(numbers: Mapping[str, Any]) -> list[Chart]:
    """Return the charts of `numbers` of `api.report`."""
    drawn: tuple[tuple[str, Callable[[Any], Chart]], ...] = (
        ("injected", injected_chart), ("recalls", recalls_chart), ("architects", architects_chart), ("growth", growth_chart),
        ("saved", saved_chart), ("layers", layers_chart), ("signals", signals_chart),
    )  # fmt: skip
    return [draw(numbers[name]) for name, draw in drawn]


def charts_page(frame: Frame, asked: Asked) -> Shown:  # noqa: ARG001 - every page has the same parameters
    """Return the charts of a report, of all time."""
    drawn = later(frame, lambda: charts_of(numbers(read(frame.home), hidden=redaction_rules(frame.home))))
    return Shown("charts.html", {"drawn": drawn}, later=True)


PAGES = [Page("/charts", "Charts", charts_page)]


def as_html(found: Mapping[str, Any], *, redacted: bool = True) -> str:
    """Return a report as a whole HTML document; `redacted` says in it whether secrets were replaced.

    Raises:
        BackendUnavailable: the extra `view` is not installed.
    """
    with packages_of("view", where="report", otherwise=", or use --format markdown, which needs nothing."):
        template = environment().get_template("report.html")
    return str(
        template.render(found=found, happened=in_words(found["counts"]), drawn=charts_of(found["charts"]), redacted=redacted)
    )  # fmt: skip
