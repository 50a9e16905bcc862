from aether.messages.sources import knowledge_graph
from tests.tables import rows

ENTITY = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}


RELATION = {"from": "ant", "to": "leaf", "relationType": "eats"}


def read(text):
    bad = []
    return knowledge_graph.read_graph(text.encode().splitlines(keepends=True), on_bad=bad.append), bad


def test_a_file_comes_back_as_it_was_written():
    text = knowledge_graph.graph_text([ENTITY], [RELATION])

    found, bad = read(text)

    assert text.splitlines()[1] == '{"type":"relation","from":"ant","to":"leaf","relationType":"eats"}'
    assert found == {"entities": [ENTITY], "relations": [RELATION]}
    assert bad == []


@rows(
    ("line", "reason"),
    [
        ('{"type":"note","name":"x"}', "neither an entity nor a relation"),
        ('{"type":["entity"]}', "neither"),
        ("3", "neither"),
        ('{"type":"entity","name":"x"}', "without 'entityType' as text"),
        ('{"type":"relation","from":"a","to":5}', "without 'to' as text"),
        ('{"type":"entity","name":"x","entityType":"y","observations":"z"}', "not a list of texts"),
        ('{"type":"entity","name":"x","entityType":"y","observations":[1]}', "not a list of texts"),
        ('{"type":"entity","na', "not JSON"),
    ],
)
def test_an_invalid_line_is_reported_and_the_others_are_read(line, reason):
    found, bad = read(
        f"{knowledge_graph.graph_text([ENTITY], [])}{line}\n{knowledge_graph.graph_text([], [RELATION])}"
    )

    assert found == {"entities": [ENTITY], "relations": [RELATION]}
    assert [one.line for one in bad] == [2]
    assert reason in bad[0].reason
