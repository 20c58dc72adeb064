"""JSON patches: their changes, refusals and limits."""

from __future__ import annotations

import re

import pytest

from placement.extensions.baremetal.schemas import json_patch

DOCUMENT = {"name": None, "extra": {"a": 1, "l": [1, 2], "s": "text"}, "fixed": 1}
UPDATABLE = ("name", "extra")


def apply(document, operations):
    return json_patch.Patch(operations, UPDATABLE).apply(document)


def patch(op, path, *value):
    return apply(DOCUMENT, [{"op": op, "path": path, **({"value": value[0]} if value else {})}])


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        (("add", "/name", "x"), {"name": "x"}),
        (("replace", "/name", None), {"name": None}),
        (("add", "/extra", {}), {"extra": {}}),
        (("add", "/extra/b~1c~0d", 2), {"extra": {**DOCUMENT["extra"], "b/c~d": 2}}),
        (("add", "/extra/", 2), {"extra": {**DOCUMENT["extra"], "": 2}}),
        (("add", "/extra/l/-", 3), {"extra": {**DOCUMENT["extra"], "l": [1, 2, 3]}}),
        (("add", "/extra/l/0", 3), {"extra": {**DOCUMENT["extra"], "l": [3, 1, 2]}}),
        (("replace", "/extra/l/0", 3), {"extra": {**DOCUMENT["extra"], "l": [3, 2]}}),
        (("remove", "/extra/l"), {"extra": {"a": 1, "s": "text"}}),
    ],
)
def test_an_operation_changes_the_value_at_its_path_and_not_the_original(operation, changed):
    original = {**DOCUMENT, "extra": {**DOCUMENT["extra"], "l": [1, 2]}}
    assert patch(*operation) == {**DOCUMENT, **changed}
    assert original == DOCUMENT


def test_a_member_whose_value_is_null_can_be_removed():
    assert patch("remove", "/name") == {"extra": DOCUMENT["extra"], "fixed": 1}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (("replace", "/extra/b", 1), "non-existent object 'b'"),
        (("remove", "/extra/b"), "non-existent object 'b'"),
        (("add", "/extra/b/c", 1), "member 'b' not found"),
        (("add", "/extra/a/c", 1), "indexing"),
        (("add", "/name/c", 1), "indexing"),
        (("add", "/extra/s/0", 1), "non-container|resolve json pointer"),  # jsonpointer from 3.1, and before
        (("add", "/extra/l/9", 1), "outside of list"),
        (("add", "/extra/l/x", 1), "not a valid sequence index"),
        (("replace", "/extra/l/-", 1), "'-'"),
        (("remove", "/extra/l/-"), "'-'"),
        (("add", "/extra/b~2", 1), "invalid escape"),
        (("add", "extra", 1), "must start with /"),
        (("add", "/extra/b"), "'value'"),
        (("replace", "/name"), "'value'"),
    ],
)
def test_the_path_of_an_operation_that_cannot_be_applied_is_named(operation, reason):
    with pytest.raises(json_patch.PatchNotApplied) as raised:
        patch(*operation)
    assert operation[1] in raised.value.sentence
    assert re.search(reason, raised.value.sentence)


@pytest.mark.parametrize("path", ["/fixed", "/fixed/x", "/other", "/", "", "/~1extra"])
def test_a_path_outside_of_the_updatable_fields_is_refused(path):
    with pytest.raises(json_patch.NotUpdatable, match="extra, name"):
        patch("add", path, 1)
    with pytest.raises(json_patch.NotUpdatable):
        apply(DOCUMENT, [{"op": "remove", "path": "/extra/no"}, {"op": "remove", "path": path}])


def test_operations_see_earlier_ones_and_share_no_values_with_the_request():
    operations = [
        {"op": "add", "path": "/extra", "value": {}},
        {"op": "add", "path": "/extra/x", "value": 1},
        {"op": "remove", "path": "/extra/x"},
        {"op": "add", "path": "/extra/y", "value": 2},
    ]
    for _ in range(2):
        assert apply(DOCUMENT, operations)["extra"] == {"y": 2}


# --- limits ---


def operation(path, value):
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize(
    ("operations", "failure"),
    [
        ([operation("/extra/a", 1)] * (json_patch.MAX_OPERATIONS + 1), json_patch.TooManyOperations),
        ([operation("/extra/a", "x" * 200_000)] * 6, json_patch.PatchTooLarge),
        ([operation("/extra" + "/a" * 40, 1)], json_patch.PathTooDeep),
    ],
)
def test_an_expensive_patch_is_refused_before_the_document_is_read(operations, failure):
    with pytest.raises(failure):
        json_patch.Patch(operations, UPDATABLE)


def test_a_patch_may_have_the_maximum_number_of_operations():
    operations = [operation(f"/extra/{n}", n) for n in range(json_patch.MAX_OPERATIONS)]
    assert apply(DOCUMENT, operations)["extra"]["999"] == 999
