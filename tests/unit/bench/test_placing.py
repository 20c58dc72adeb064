"""Measurements of claims: counted results, wrong refusals, and checks of the database afterwards."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db.schema import tables

BENCH = Path(__file__).parents[3] / "bench"
FIRST, SECOND = (f"c0000000-0000-4000-8000-00000000000{number}" for number in (1, 2))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a script of bench."""
    monkeypatch.syspath_prepend(BENCH)
    return lambda name: importlib.import_module(f"bench.{name}")


# --- refusals ---


@pytest.mark.parametrize(
    ("refusals", "claims", "free", "wrong_refusals"),
    [
        ([(5.0, 0.25)], [], 0.0, 0),
        ([(5.0, 0.25)], [], 0.25, 1),
        ([(5.0, 0.25)], [(6.0, 0.125)], 0.125, 0),
        ([(5.0, 0.125)], [(6.0, 0.25)], 0.0, 1),
        ([(5.0, 0.25)], [(4.0, 0.25)], 0.0, 0),
    ],
    ids=["full", "room at the end", "less was claimed", "more was claimed later", "claimed by an earlier request"],
)
def test_a_refusal_is_wrong_if_as_much_was_free_later(
    module: Any, refusals: Any, claims: Any, free: float, wrong_refusals: int
) -> None:
    assert module("until_full").Refusals(refusals, claims).wrong(free) == wrong_refusals


@pytest.mark.parametrize(
    ("in_one_call", "path"), [(False, b"GET /allocation_candidates?"), (True, b"POST /v1/claims ")]
)
def test_a_host_is_searched_and_claimed_in_two_requests_or_one(module: Any, in_one_call: bool, path: bytes) -> None:
    replies = module("placing_requests").Replies() if in_one_call else None
    cloud = module("until_full").Cloud(hosts=10, until=0.95, replies=replies)
    server = object.__new__(module("load").Server)
    server.prefix, server._headers = "", ""
    (client,) = cloud.clients(server, 1)
    assert next(client).startswith(path)


# --- results in responses ---


def answer(load: Any, status: int, document: Any) -> Any:
    return load.Answer(status, json.dumps(document).encode() if document is not None else b"<html>")


def test_results_are_counted_not_requests(module: Any) -> None:
    replies, load = module("placing_requests").Replies(), module("load")
    claim = {"consumer": FIRST, "status": 200, "allocations": {"p": {"resources": {"VCPU": 1}, "generation": 2}}}
    refusal = {"consumer": SECOND, "status": 409, "error": {"code": "placement.v1.no_room"}}
    replies.add(answer(load, 200, {"results": [claim, refusal]}))
    replies.add(answer(load, 503, None))
    assert replies.outcomes() == {"claimed": 1, "409 placement.v1.no_room": 1, "503 <html>": 1}
    assert replies.outcomes(1) == {"503 <html>": 1}
    assert replies.holdings() == {FIRST: {"p": {"VCPU": 1}}}


# --- the database ---


class StoredHosts:
    """A database with two hosts of one and two NUMA nodes, each with eight processors, and without allocations."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = sa.create_engine(url)
        tables.metadata.create_all(self._engine)
        self._add(tables.resource_classes, {"id": 0, "name": "VCPU"})
        for number, (root, parent) in enumerate([(1, None), (1, 1), (3, None), (3, 3), (3, 3)], 1):
            ids = {"id": number, "uuid": f"p{number}", "name": f"n{number}", "generation": 0}
            self._add(tables.resource_providers, {**ids, "root_provider_id": root, "parent_provider_id": parent})
        sizes = {"total": 10, "reserved": 2, "min_unit": 1, "max_unit": 10, "step_size": 1, "allocation_ratio": 1.0}
        for provider in (2, 4, 5):
            self._add(tables.inventories, {**sizes, "resource_provider_id": provider, "resource_class_id": 0})

    def _add(self, table: sa.Table, row: dict[str, Any]) -> None:
        with self._engine.begin() as db:
            db.execute(sa.insert(table), [row])

    def allocate(self, consumer: str, provider: int, amount: int) -> None:
        ids = {"resource_provider_id": provider, "resource_class_id": 0}
        self._add(tables.allocations, {**ids, "consumer_id": consumer, "used": amount})


@pytest.fixture
def database(tmp_path: Path) -> StoredHosts:
    return StoredHosts(f"sqlite:///{tmp_path}/placement.sqlite")


def test_a_consistent_database_passes(module: Any, database: StoredHosts) -> None:
    database.allocate(FIRST, 2, 8)
    holdings = {FIRST: {"p2": {"VCPU": 8}}}
    assert module("placing_checks").failures(database.url, holdings, together=True) == []


def test_usage_beyond_a_capacity_is_found(module: Any, database: StoredHosts) -> None:
    database.allocate(FIRST, 2, 5)
    database.allocate(SECOND, 2, 4)
    assert module("placing_checks").failures(database.url, {}, together=False) == ["provider 2, class 0: 9 of 10 used"]


def test_usage_without_an_inventory_is_found(module: Any, database: StoredHosts) -> None:
    database.allocate(FIRST, 1, 1)
    assert module("placing_checks").failures(database.url, {}, together=False) == [
        "provider 1, class 0: 1 of None used"
    ]


@pytest.mark.parametrize(
    "requested", [{"p2": {"VCPU": 2}}, {"p4": {"VCPU": 1}}, {"p2": {"VCPU": 1}, "p4": {"VCPU": 1}}]
)
def test_a_consumer_whose_allocations_differ_from_its_responses_is_found(
    module: Any, database: StoredHosts, requested: Any
) -> None:
    database.allocate(FIRST, 2, 1)
    (sentence,) = module("placing_checks").failures(database.url, {FIRST: requested}, together=False)
    assert sentence == f"consumer {FIRST} holds {{'p2': {{'VCPU': 1}}}}, but the response said {requested}"


def test_a_consumer_with_allocations_on_two_nodes_is_found(module: Any, database: StoredHosts) -> None:
    database.allocate(FIRST, 4, 1)
    database.allocate(FIRST, 5, 1)
    holdings = {FIRST: {"p4": {"VCPU": 1}, "p5": {"VCPU": 1}}}
    check = module("placing_checks").failures
    assert check(database.url, holdings, together=False) == []
    assert check(database.url, holdings, together=True) == [f"consumer {FIRST} has providers of several NUMA nodes"]


def test_the_emptiest_provider_determines_the_largest_free_share(module: Any, database: StoredHosts) -> None:
    database.allocate(FIRST, 2, 8)
    database.allocate(FIRST, 4, 6)
    database.allocate(SECOND, 5, 4)
    assert module("placing_checks").largest_free_share(database.url) == 0.5


# --- the report ---


def test_the_readme_names_every_case(module: Any) -> None:
    placing = module("placing")
    text = (BENCH / "README.rst").read_text()
    assert [
        name for name in (*(case.name for case in placing.CASES), placing.FILLING) if f"``{name}``" not in text
    ] == []
