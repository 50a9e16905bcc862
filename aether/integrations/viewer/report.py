"""The report as one HTML file: styles and charts are in it, no script, and nothing is loaded from elsewhere.

The data are those of `api.report`. All text is escaped, and the file itself forbids a browser to load or run anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aether.errors import BackendUnavailable
from aether.integrations.viewer.charts import charts_of
from aether.integrations.viewer.frame import environment


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
            fix="Run: pip install 'aether-memory[view]', or use --format markdown, which needs nothing.",
            where="report",
        ) from reason
    return str(template.render(found=found, drawn=charts_of(found), redacted=redacted))
