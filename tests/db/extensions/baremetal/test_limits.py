"""The limits of the Bare Metal API on the depth, length and number of values: values beyond them are refused with 400.

The databases limit the depth of values and the length of keys.
"""

from __future__ import annotations

import functools
import json

import pytest

from tests.db.faults import Plan, plant

NODE = {"driver": "fake-hardware", "name": "n0", "resource_class": "bm"}
COLLECTIONS = ["/nodes", "/allocations"]
DEEPEST = 30


def nest(depth, inner=1):
    """Return nested objects and lists, ``depth`` levels deep; the outermost is an object."""
    return functools.reduce(lambda value, number: {"a": value} if number % 2 else [value], range(depth), inner)


def outermost(depth):
    return {"a": nest(depth - 1)}


def create(client, path, **body):
    return client("POST", path, {**(NODE if path == "/nodes" else {"name": "n0", "resource_class": "bm"}), **body})


def operation(path, value):
    return {"op": "add", "path": path, "value": value}


def assert_refused(answer, text):
    assert answer.status == 400, answer
    assert text in answer.body["faultstring"]


@pytest.mark.every_database
@pytest.mark.parametrize("path", COLLECTIONS)
@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1, 100])
def test_a_value_has_a_maximum_depth(client, path, depth):
    value = outermost(depth)
    answer = create(client, path, extra=value)
    if depth > DEEPEST:
        assert_refused(answer, "nested too deeply")
        assert create(client, path, extra={}).status == 201
        assert_refused(client("PATCH", f"{path}/n0", [operation("/extra", value)]), "nested too deeply")
    else:
        assert answer.status == 201, answer
        assert client("PATCH", f"{path}/n0", [operation("/extra/b", 1)]).status == 200
        assert client("GET", f"{path}/n0").body["extra"] == {**value, "b": 1}
    # Filters that read the values.
    for query in ("description_contains=x", "retired=false", "sort_key=description"):
        assert client("GET", f"/nodes?{query}").status == 200


@pytest.mark.parametrize("path", COLLECTIONS)
@pytest.mark.parametrize("place", ["/extra", "/extra/a", "/name", "/nothing", "extra", "/extra/a/b"])
def test_a_patch_that_is_too_deep_is_refused(client, path, place):
    create(client, path, extra={})
    for op in ("add", "remove"):
        for depth in (500, 900):
            value = '{"a":' * depth + "1" + "}" * depth
            text = f'[{{"op": "{op}", "path": "{place}", "value": {value}}}]'
            assert client("PATCH", f"{path}/n0", raw=text.encode()).status == 400


@pytest.mark.parametrize("path", COLLECTIONS)
@pytest.mark.parametrize("name", ["extra", "name"])
def test_a_patch_that_becomes_too_deep_by_many_operations_is_refused(client, path, name):
    create(client, path, extra={})
    step = 20
    value = functools.reduce(lambda inner, _: {"a": inner}, range(step), 1)
    operations = [operation(f"/{name}" + "/a" * step * number, value) for number in range(80)]
    assert client("PATCH", f"{path}/n0", operations).status == 400


@pytest.mark.every_database
@pytest.mark.parametrize("path", COLLECTIONS)
def test_a_key_has_a_maximum_length(client, path):
    """MySQL stores the length of a key in 16 bits."""
    longest = "\N{SNOWMAN}" * (2**16 // 3)
    assert len(longest.encode()) == 2**16 - 1
    assert_refused(create(client, path, extra={"a": [{longest + "x": 1}]}), "key")
    assert create(client, path, extra={"a": [{"x" * (2**16 - 1): 1}]}).status == 201
    assert_refused(client("PATCH", f"{path}/n0", [operation("/extra/b", {"x" * 2**16: 1})]), "key")


# --- sizes -----------------------------------------------------------------------------------------------------------

LARGEST = 2**18


def test_the_details_of_a_node_have_a_maximum_size(client):
    quarter = {"a": "x" * (LARGEST // 4)}
    details = dict.fromkeys(("extra", "properties", "driver_info"), quarter)
    assert_refused(create(client, "/nodes", **details, instance_info=quarter), "node")
    assert create(client, "/nodes", **details).status == 201
    assert_refused(client("PATCH", "/nodes/n0", [operation("/instance_info", quarter)]), "node")
    assert client("PATCH", "/nodes/n0", [operation("/instance_info", {}), operation("/owner", "me")]).status == 200
    patch = [{"op": "remove", "path": "/extra"}, operation("/instance_info", quarter)]
    assert client("PATCH", "/nodes/n0", patch).status == 200


def test_a_node_beyond_the_maximum_can_be_changed(client):
    """A claim writes traits of any size; changes of other fields, and changes that shrink the details, succeed."""
    uuid = client.node("n0", details={"extra": {"a": "x" * LARGEST}, "properties": {"a": 1}})
    assert client("PATCH", f"/nodes/{uuid}", [operation("/owner", "me")]).status == 200
    assert client("PATCH", f"/nodes/{uuid}", [{"op": "remove", "path": "/properties/a"}]).status == 200
    assert_refused(client("PATCH", f"/nodes/{uuid}", [operation("/properties/a", 1)]), "node")


@pytest.mark.parametrize("path", COLLECTIONS)
def test_a_patch_beyond_a_limit_is_refused_before_its_transaction(client, path):
    """A transaction applies the operations while other writes wait."""
    create(client, path, extra={})
    plan = Plan()
    plant(client.database, plan)
    operations = [operation("/extra" + "/a" * number, {}) for number in range(1, 1500)]
    assert_refused(client("PATCH", f"{path}/n0", operations), "at most 1000 operations: got 1499")
    assert_refused(client("PATCH", f"{path}/n0", operations[:500]), "at most 40 names")
    assert_refused(client("PATCH", f"{path}/n0", [operation("/extra/a", "x" * 200_000)] * 6), "1048576 bytes")
    assert not plan.seen
    assert client("GET", f"{path}/n0").body["extra"] == {}


@pytest.mark.parametrize(("name", "limit"), [("traits", 50), ("candidate_nodes", 1000)])
def test_the_lists_of_an_allocation_have_a_maximum_length(client, name, limit):
    body = {"resource_class": "bm", name: ["CUSTOM_A" if name == "traits" else "n0"] * limit}
    client.node("n0", traits=["CUSTOM_A"])
    assert client("POST", "/allocations", body).status == 201
    body[name].append(body[name][0])
    assert_refused(client("POST", "/allocations", body), f"at most {limit} {name}: got {limit + 1}")
    assert json.dumps(client("GET", "/allocations").body).count("CUSTOM_A") <= limit


def test_a_page_of_allocations_reads_only_the_selected_fields(client):
    client.node("n0")
    assert create(client, "/allocations", extra={"a": 1}).status == 201
    plan = Plan()
    plant(client.database, plan)
    [document] = client("GET", "/allocations?fields=uuid,state").body["allocations"]
    assert (document["state"], set(document)) == ("active", {"uuid", "state", "links"})
    assert not [statement for statement in plan.seen if "candidate_nodes" in statement or "extra" in statement]
