"""The arrays of an index file have the recorded names, types and meaning, or the file has another layout.

A file is read by workers that know its layout.  After a change, increase ``store.LAYOUT``, and record the new one:

    python -m tests.index.test_layout
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from placement.index import build
from placement.index.position import Position
from placement.index.records import Rows
from placement.index.refresh import Base
from placement.index.store import LAYOUT, _facts
from placement.index.tables import Tables

_RECORDED = Path(__file__).with_name("layout.json")
_UUIDS = [f"01234567-89ab-cdef-0123-{number:012x}" for number in (9, 7, 8)]
#: A tree of three with another root beside; every kind of inventory, text and set, in sparse and dense form.
_ROWS = Rows(
    providers=[
        (11, _UUIDS[0], "root", 5, None, 11),
        (12, _UUIDS[1], "é", 2**31, 11, 11),
        (14, "other uuid", None, 0, 12, 11),
        (19, _UUIDS[2], "", None, None, 19),
    ],
    inventories=[
        (11, 0, 64, 2, 1, 64, 1, 16.0),
        (12, 0, 8, 0, 2, 4, 2, 1.5),
        (19, 0, 2**40, 0, 1, 2**31 - 1, 1, 1.0),
        (14, 10001, 3, 1, 1, 3, 1, 0.5),
    ],
    usages=[(11, 0, 12), (14, 10001, 2)],
    traits=[(11, "T_A"), (12, "T_A"), (14, "T_B"), (19, "T_A")],
    aggregates=[(11, "aggregate 1"), (12, "aggregate 1"), (11, "aggregate 2")],
    trait_ids={"T_A": 7, "T_B": 3},
)
_POSITION = Position("instance", datetime.datetime(2001, 2, 3, 4, 5, 6), {5: 6, -7: 8})


def described() -> dict[str, Any]:
    """Return the type, the shape and the elements of each array, and the facts, of a small file."""
    # With this number of slots, sets and columns of one provider are sparse.
    with mock.patch.object(build, "SPARE_SLOTS", 6):
        arrays, names = build.build_arrays(Tables.of(_ROWS), {0: "VCPU", 10001: "CUSTOM_A"})
    facts = {name: fact for name, fact in _facts(Base(arrays, names, _POSITION)).items() if name != "layout"}
    return {
        "arrays": {name: [array.dtype.str, *array.shape, array.tolist()] for name, array in sorted(arrays.items())},
        "facts": facts,
    }


def test_a_layout_is_never_changed() -> None:
    recorded = json.loads(_RECORDED.read_text())
    hint = "increase store.LAYOUT, and run python -m tests.index.test_layout"
    assert recorded["layout"] == LAYOUT, "record the new layout: python -m tests.index.test_layout"
    # Compared as JSON, in which NaN and infinity equal themselves, and tuples are lists.
    now = json.loads(json.dumps(described()))
    assert now["arrays"].keys() == recorded["arrays"].keys(), hint
    for name, array in now["arrays"].items():
        assert (name, array) == (name, recorded["arrays"][name]), hint
    assert now["facts"] == recorded["facts"], hint


def test_the_recorded_file_has_arrays_of_every_form() -> None:
    """Otherwise a change of the arrays of another form would not be noticed."""
    arrays = described()["arrays"]
    assert "columns/10001/slots" in arrays, "a sparse column"
    assert "columns/0/slots" not in arrays, "a dense column"
    for kind in ("traits", "aggregates"):
        assert {row >= 0 for row in arrays[f"{kind}/rows"][-1]} == {True, False}, "dense and sparse sets"
    without_elements = [name for name, (*_, elements) in arrays.items() if not elements]
    assert without_elements == []


if __name__ == "__main__":
    recorded = json.loads(_RECORDED.read_text())
    if recorded["layout"] == LAYOUT and recorded != {"layout": LAYOUT, **json.loads(json.dumps(described()))}:
        sys.exit("increase store.LAYOUT first")
    lines = [f"{json.dumps(name)}: {json.dumps(array)}" for name, array in described()["arrays"].items()]
    body = ",\n  ".join(lines)
    facts = json.dumps(described()["facts"])
    _RECORDED.write_text(f'{{"layout": {LAYOUT},\n "facts": {facts},\n "arrays": {{\n  {body}\n}}}}\n')
