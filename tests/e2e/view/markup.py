"""A page as a strict reader sees it: its elements in order, and its text, without a browser."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
# Their end tags may be left out by the standard, but templates of ours write each.
_URLS = frozenset("href src action formaction poster data srcset ping background cite manifest".split())


class Page(HTMLParser):
    """The elements and the text of one page; `faults` names what no page of ours may hold."""

    def __init__(self, html: str) -> None:
        """Read `html` to its end."""
        super().__init__(convert_charrefs=True)
        self.shapes: set[tuple[str, str]] = set()
        self.faults: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self.values: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]
        self.text = "".join(self.said)

    def handle_starttag(self, tag, attrs):
        self.shapes |= {(tag, ""), *((tag, name) for name, _ in attrs)}
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice: {names}")
        for name, value in attrs:
            self.values.append(value or "")
            if name.startswith("on") or name in ("style", "srcdoc"):
                self.faults.append(f"<{tag} {name}>")
            leads_away = tag == "a" and dict(attrs).get("rel") == "noreferrer noopener nofollow"
            if leads_away and re.match("https?://|mailto:", value or ""):
                continue  # a link in the words of a conversation, which waits for a click and says nothing of this page
            if name in _URLS and not _is_ours(value or ""):
                self.faults.append(f"<{tag} {name}={value!r}>")
            if tag == "a" and name == "href":
                self.links.append(value or "")
        if tag == "script" and "src" not in names:
            self.faults.append("inline script")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> where {self._open[-1:]} is open")
        else:
            self._open.pop()

    def handle_data(self, data):
        self.said.append(data)

    def handle_comment(self, data):
        self.faults.append(f"comment {data[:40]!r}")

    def handle_pi(self, data):
        self.faults.append(f"instruction {data[:40]!r}")

    def handle_decl(self, decl):
        if decl.lower() != "doctype html":
            self.faults.append(f"declaration {decl[:40]!r}")

    def unknown_decl(self, data):
        self.faults.append(f"declaration {data[:40]!r}")


def _is_ours(url: str) -> bool:
    """Return whether `url` stays on the page's own server, as every browser reads it."""
    bare = re.sub(r"[\t\n\r]", "", url).strip("".join(map(chr, range(33))))
    return not re.match(r"[a-zA-Z][a-zA-Z0-9+.\-]*:|[/\\]{2}|[/\\][/\\]", bare)


def raw_faults(html: str) -> list[str]:
    """Return the characters of `html` that no page may hold, whatever its texts hold: those that hide or reorder text."""
    found = {
        f"U+{ord(one):04X}"
        for one in html
        if (unicodedata.category(one) == "Cc" and one not in "\t\n\r")
        or one in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    }
    return sorted(found)


def readable(text: str) -> str:
    """Return `text` as it can be compared: without spaces, invisible characters and the marks that stand for them."""
    kept = (one for one in text if unicodedata.category(one)[0] not in "CZM" and one != "\ufffd")
    return "".join(kept)
