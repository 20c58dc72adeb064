"""Timeline pictures: complete, in order, and without overlapping texts."""

import xml.etree.ElementTree as ET
from itertools import combinations

from jepsen import timeline
from jepsen.history import RUNNER, Event, History, Operation

SVG = "{http://www.w3.org/2000/svg}"
SECOND = 1_000_000_000
OPERATIONS = [
    Operation(0, 0, 0, 5_000_000, 0, "PUT", "/allocations/one", 38, {"allocations": {}}, 204),
    Operation(1, 1, 2_000_000, None, 0, "PUT", "/allocations/<two>&", 38, {"allocations": {}}),
    Operation(2, 1, 3_000_000, 4_000_000, 0, "GET", "/allocations/one", 38, None, 200, {"x": "a long text " * 20}),
    Operation(
        3, 1, 9 * SECOND, 9 * SECOND + 1, 0, "PUT", "/allocations/three", 38, {}, 409, {"errors": [{"code": "c"}]}
    ),
    Operation(4, RUNNER, 30 * SECOND, 30 * SECOND + 9, 0, "GET", "/allocations/one", 38, None, 200, {}),
]
EVENTS = [
    Event("kill a worker", 1_000_000, SECOND),
    Event("pause the database", 3_000_000, 8 * SECOND),
    Event("partition a node", 9 * SECOND, None, loses_tail=True),
    Event("after everything", 40 * SECOND, 41 * SECOND),
]


def draw(operations=OPERATIONS, events=EVENTS, wrong=(2,)):
    text = timeline.svg(History({}, list(operations), list(events)), wrong, "What is <wrong>")
    return ET.fromstring(text)


def texts(root):
    return [
        (float(element.get("x")), float(element.get("y")), element.text or "") for element in root.iter(f"{SVG}text")
    ]


def test_texts_do_not_overlap():
    boxes = [(x, y - 9, x + 6.6 * len(text), y + 2, text) for x, y, text in texts(draw()) if text]
    assert len(boxes) > 15
    for box, other_box in combinations(boxes, 2):
        apart = box[2] <= other_box[0] or other_box[2] <= box[0] or box[3] <= other_box[1] or other_box[3] <= box[1]
        assert apart, (box, other_box)


def test_texts_are_inside_the_picture():
    root = draw()
    assert max(x + 6.6 * len(text) for x, _, text in texts(root)) <= float(root.get("width"))
    assert max(y for _, y, _ in texts(root)) <= float(root.get("height"))


def test_boxes_overlap_as_operations_did():
    edges = {}
    for group in draw().iter(f"{SVG}g"):
        rectangle = group.find(f"{SVG}rect")
        title = group.find(f"{SVG}title").text
        if rectangle is not None and title.startswith("#"):
            left = float(rectangle.get("x"))
            edges[int(title[1:].split()[0])] = left, left + float(rectangle.get("width"))
    assert edges.keys() == {0, 2, 3, 4}
    assert edges[0][0] < edges[2][0] < edges[2][1] < edges[0][1] < edges[3][0] < edges[3][1] < edges[4][0]


def test_an_open_operation_has_no_end_and_its_process_continues_below():
    root = draw()
    [opened] = [element for element in root.iter(f"{SVG}path") if "open" in element.get("class")]
    assert "z" not in opened.get("d").lower()
    lines = {text: y for _, y, text in texts(root)}
    assert lines["#2 GET /allocations/one"] > lines["#1 PUT /allocations/<two>&"]


def test_violating_operations_are_marked():
    marked = [element for element in draw().iter() if "wrong" in element.get("class", "").split()]
    assert len(marked) == 1


def test_events_that_overlap_the_operations_are_bands():
    event_names = [text for _, _, text in texts(draw())]
    assert {"kill a worker", "pause the database", "partition a node (may lose a tail)"} <= set(event_names)
    assert "after everything" not in event_names


def test_a_history_without_operations_shows_its_events():
    event_names = [text for _, _, text in texts(draw([], EVENTS))]
    assert {"kill a worker", "after everything"} <= set(event_names)
    assert texts(draw([], []))
