import json

from aether.messages.model import Layout, dumps, layout_of
from tests.tables import rows

VALUE = {"a": [1, {"b": "é"}], "c": []}


@rows("indent", [None, 1, 2, 4, "\t"])
@rows("ascii", [True, False])
@rows("end", ["", "\n"])
def test_what_json_printed_is_printed_alike(indent, ascii, end):
    for separators in [None] if indent else [None, (",", ":")]:
        source = (json.dumps(VALUE, indent=indent, ensure_ascii=ascii, separators=separators) + end).encode()

        assert dumps(VALUE, layout_of(source)) == source


def test_a_layout_is_told_from_how_a_text_opens():
    assert layout_of(b"[]") == layout_of(b"") == Layout()
    assert layout_of(b'[\r\n    {"a":1}]\r\n') == Layout(indent=4, spaced=False, end="\n")
    assert layout_of(b'{"a:b": 1}').spaced


def test_a_lone_surrogate_is_escaped():
    assert dumps({"a": "é\ud800"}, Layout()) == b'{"a": "\\u00e9\\ud800"}'
