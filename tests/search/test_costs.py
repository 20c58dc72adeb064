"""Time and memory of a search are bounded in any world, and an incomplete search is reported.

The limits are above the figures in docs/performance.rst, so that the tests pass on a busy machine.
"""

from __future__ import annotations

import functools
import types
from typing import NamedTuple
from urllib.parse import parse_qsl

import pytest

from placement import deploy
from placement.db.database import Database
from placement.handlers import provider
from placement.handlers.allocation_candidate import present
from placement.http.response import encode, json_list
from placement.index.snapshot import Snapshot
from placement.microversion import Version
from placement.schemas import allocation_candidate as schema
from placement.search.budget import Budget, Exhausted
from placement.search.choose import DEPTH_FIRST
from placement.search.find import Settings, find
from placement.search.query.parse import search_query
from tests import caller, web
from tests.cost_measurement import cost
from tests.run_length import LONG
from tests.search import costly_queries

SECONDS, MEBIBYTES = 20, 300
QUERIES = dict(costly_queries.queries(10 if LONG else 1))


class Outcome(NamedTuple):
    candidates: int
    shortage: str | None
    size: int
    operations: int


def respond(snapshot: Snapshot, query_string: str, version: Version) -> Outcome:
    """Do the work of a request, from the query string to the bytes of the response."""
    pairs = parse_qsl(query_string, keep_blank_values=True)
    query = search_query(schema.LIST.validate(pairs, version), version)
    result = find(query, snapshot, Settings(10_000))
    presented = present(result, version)
    count = len(presented.document["allocation_requests"])
    return Outcome(count, presented.shortage, len(encode(presented.document)), result.operations)


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_exceeds_the_bounds(name: str) -> None:
    costly_query = QUERIES[name]
    assert len(costly_query.query) <= 65_536
    snapshot = costly_query.world()
    work = functools.partial(respond, snapshot, costly_query.query, Version(1, costly_query.minor))
    measured = cost(work)
    assert measured.seconds < SECONDS
    assert measured.mebibytes < MEBIBYTES
    assert measured.result.size < 100 * 2**20
    assert measured.result.operations < 1_100_000


@pytest.mark.parametrize("operations", [0, 5_000, 20_000, 50_000, 100_000])
def test_a_search_that_runs_out_of_operations_returns_the_first_candidates(operations: int) -> None:
    costly_query = QUERIES["two groups in a wide tree"]
    query = search_query(schema.LIST.validate(parse_qsl(costly_query.query), Version(1, 39)), Version(1, 39))
    everything = find(query, costly_query.world(), Settings(10_000))
    assert everything.complete
    result = find(query, costly_query.world(), Settings(10_000, operations=operations))
    assert result.candidates == everything.candidates[: len(result.candidates)]
    assert result.complete == (len(result.candidates) == len(everything.candidates))
    assert result.shortage == (None if result.complete else "operations")
    assert not result.candidates if operations == 0 else result.complete == (operations == 100_000)


@pytest.mark.parametrize("minor", [10, 28, 29, 39])
def test_a_response_that_runs_out_of_memory_contains_the_first_candidates(minor: int) -> None:
    """Each candidate is complete, with the summaries of its providers."""
    snapshot = costly_queries.hosts(600, 5)
    version = Version(1, minor)
    query = search_query(schema.LIST.validate([("resources", "VCPU:1")], version), version)
    result = find(query, snapshot, Settings(10_000))
    everything = present(result, version).document
    partial, shortage = present(result._replace(remaining_memory=800_000), version)
    assert shortage == "memory"
    count = len(partial["allocation_requests"])
    assert 10 < count < 600
    assert partial["allocation_requests"] == everything["allocation_requests"][:count]
    assert everything["provider_summaries"].items() >= partial["provider_summaries"].items()
    assert len(partial["provider_summaries"]) == count * (6 if minor >= 29 else 1)


def test_a_shared_summary_is_counted_once_and_at_least_one_candidate_is_returned() -> None:
    """Groups of five candidates share the summaries of one tree."""
    version = Version(1, 39)
    query = search_query(schema.LIST.validate([("resources", "VGPU:1")], version), version)
    result = find(query, costly_queries.hosts(600, 5), Settings(strategy=DEPTH_FIRST))
    partial = present(result._replace(remaining_memory=800_000), version).document
    trees, remainder = divmod(len(partial["provider_summaries"]), 6)
    assert (10 < trees < 600, remainder) == (True, 0)
    assert len(partial["allocation_requests"]) == 5 * trees
    partial = present(result._replace(remaining_memory=1), version).document
    assert len(partial["allocation_requests"]) >= 1


def test_memory_for_as_many_candidates_as_the_limit_is_not_a_shortage() -> None:
    version = Version(1, 39)
    query = search_query(schema.LIST.validate([("resources", "VGPU:1")], version), version)
    snapshot = costly_queries.hosts(600, 5)
    count = len(find(query, snapshot, Settings(memory=800_000)).candidates)
    assert 10 < count < 3000
    for limit, shortage in ((count, None), (count + 1, "memory")):
        result = find(query, snapshot, Settings(limit, memory=800_000))
        assert len(result.candidates) == count
        assert result.shortage == shortage
        assert result.remaining_memory < 410_000, "half of it is reserved for candidates"


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({}, None),
        ({"placement__max_search_operations": 1000}, "operations"),
        ({"placement__max_search_memory": 1}, "memory"),
    ],
)
def test_a_header_names_the_exhausted_budget(database: Database, options: dict[str, int], header: str | None) -> None:
    call = caller.inside(deploy.loadapp(web.configuration(**options), database))
    for number in range(41):
        more = {"parent_provider_uuid": costly_queries.uuid(0)} if number else {}
        body = {"name": str(number), "uuid": costly_queries.uuid(number), **more}
        assert call("POST", "/resource_providers", 39, body).status == 200
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 9}}}
        assert call("PUT", f"/resource_providers/{costly_queries.uuid(number)}/inventories", 39, body).status == 200
    for query in (
        costly_queries.groups(2, lambda _: "VCPU:1"),
        costly_queries.groups(2, lambda _: "VCPU:1") + "&limit=1600",
    ):
        answer = call("GET", f"/allocation_candidates?{query}")
        assert answer.status == 200
        assert answer.headers.get("x-placement-incomplete") == header
        assert set(answer.body) == {"allocation_requests", "provider_summaries"}
        count = len(answer.body["allocation_requests"])
        assert count == (1600 if "limit" in query else 41 * 41) if header is None else count < 1600
    answer = call("GET", "/allocation_candidates?resources=VCPU:1&limit=1")
    assert "x-placement-incomplete" not in answer.headers


def test_a_list_of_all_providers_needs_little_more_memory_than_its_text() -> None:
    snapshot = costly_queries.star(100_000 if LONG else 20_000)
    request = types.SimpleNamespace(mount_path="", version=Version(1, 39))

    def text() -> int:
        documents = provider._documents(request, snapshot, range(len(snapshot)))  # type: ignore[arg-type]
        return json_list("resource_providers", documents).content_length

    measured = cost(text)
    assert measured.result > 700 * len(snapshot)
    assert measured.mebibytes < 1.25 * measured.result / 2**20 + 5


def test_narrowing_is_counted_as_memory() -> None:
    """With too little memory for narrowing there is no candidate, and the search is not complete."""
    query = search_query(schema.LIST.validate([("resources", "VCPU:1")], Version(1, 39)), Version(1, 39))
    snapshot = costly_queries.hosts(600, 5)
    for memory, count in ((snapshot.size, 0), (100 * snapshot.size, 10)):
        result = find(query, snapshot, Settings(10, memory=memory))
        assert (len(result.candidates), result.complete) == (count, count > 0)
        assert not count or result.refusals.narrowing
        assert result.shortage == (None if count else "memory")


def test_a_budget_is_not_overdrawn() -> None:
    budget = Budget(operations=10, memory=10)
    assert budget.try_hold(4)
    assert not budget.try_hold(7)
    budget.hold(6)
    with pytest.raises(Exhausted):
        budget.hold(1)
    budget.spend(10)
    with pytest.raises(Exhausted):
        budget.spend(1)
    assert budget.shortage == "memory"
