"""Inconsistent rows, which this service never writes: left by lost commits, other implementations or manual changes.

They cause no 5xx, and searches find everything that is consistent.
"""

from __future__ import annotations

import datetime
import math
import uuid

import pytest
import sqlalchemy as sa

from placement import deploy
from placement.db.schema.tables import (
    allocations,
    consumers,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)
from placement.index import inconsistent
from placement.index.live import LiveIndex
from placement.index.refresh import load_index, refresh_index
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests import caller, web
from tests.db.in_process import placement
from tests.index.contents import meaning
from tests.index.rewind import without_foreign_keys
from tests.reply_conformance import Described
from tests.reused_database import NOWHERE

#: The first of the inserted ids, which a counter has not reached, or has passed entirely.
FIRST = 1_000_000
CONSISTENT = str(uuid.UUID(int=1))
INCONSISTENT = {
    name: str(uuid.UUID(int=number))
    for number, name in enumerate(
        (
            *("nameless", "no generation", "no root", "child without root", "child with a wrong root"),
            *("no such parent", "no such root", "own parent", "parent of its parent", "child of its child"),
            *("steps of zero", "negative", "great ratio", "no ratio", "endless ratio", "classless", "too much"),
        ),
        2,
    )
}
#: Special values that PostgreSQL and SQLite store; MariaDB's largest value is single-precision.
RATIOS = {
    "mariadb": {"great ratio": 3e38, "no ratio": 0.0, "endless ratio": -3e38},
    "postgresql": {"great ratio": 1e308, "no ratio": float("nan"), "endless ratio": float("-inf")},
    "sqlite": {"great ratio": 1e308, "no ratio": 0.0, "endless ratio": float("inf")},
}
AGGREGATE = str(uuid.UUID(int=100))
CONSUMER = str(uuid.UUID(int=101))


def insert(db, table, *rows):
    for row in rows:
        db.execute(sa.insert(table).values(row))


def insert_inconsistencies(database, kind):
    """Create one consistent host, and every inconsistency beside it."""

    def insert_host(db):
        provider = LockedProvider.create(db, uuid=CONSISTENT, name="sound")
        provider.replace_inventories([Inventory("VCPU", 8), Inventory("DISK_GB", 100)])
        provider.replace_traits(["HW_CPU_X86_AVX"])
        return provider.record.id

    host = database.write(insert_host)
    now = datetime.datetime(2020, 1, 1)
    with without_foreign_keys(database) as db:
        ids = {name: FIRST + number for number, name in enumerate(INCONSISTENT)}
        rows = {
            name: {"uuid": INCONSISTENT[name], "id": id_, "name": name, "generation": 1, "root_provider_id": id_}
            for name, id_ in ids.items()
        }
        rows["nameless"]["name"] = None
        rows["no generation"]["generation"] = None
        rows["no root"]["root_provider_id"] = None
        rows["child without root"] |= {"root_provider_id": None, "parent_provider_id": host}
        rows["child with a wrong root"] |= {"root_provider_id": ids["nameless"], "parent_provider_id": host}
        rows["no such parent"]["parent_provider_id"] = NOWHERE
        rows["no such root"]["root_provider_id"] = NOWHERE
        rows["own parent"]["parent_provider_id"] = ids["own parent"]
        rows["parent of its parent"]["parent_provider_id"] = ids["child of its child"]
        rows["child of its child"]["parent_provider_id"] = ids["parent of its parent"]
        insert(db, resource_providers, *rows.values())
        stock = {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}
        stocks = {name: {"resource_provider_id": id_, "resource_class_id": 0, **stock} for name, id_ in ids.items()}
        stocks["steps of zero"]["step_size"] = 0
        stocks["negative"] |= {"total": -8, "reserved": -9, "min_unit": -1, "step_size": -2, "allocation_ratio": -1.0}
        for name, ratio in RATIOS[kind].items():
            stocks[name]["allocation_ratio"] = ratio
        stocks["classless"]["resource_class_id"] = NOWHERE
        insert(db, inventories, *stocks.values())
        insert(db, inventories, stocks["nameless"] | {"resource_provider_id": NOWHERE})
        insert(
            db,
            allocations,
            *(
                {"resource_provider_id": provider, "resource_class_id": class_, "consumer_id": CONSUMER, "used": used}
                for provider, class_, used in (
                    *((host, 0, 2), (host, NOWHERE, 1), (host, 3, 1), (NOWHERE, 0, 1), (ids["negative"], 0, -3)),
                    *((ids["too much"], 0, 2**31 - 1), (ids["too much"], 0, 2**31 - 1), (ids["no generation"], 0, 1)),
                )
            ),
        )
        insert(db, consumers, {"uuid": CONSUMER, "project_id": NOWHERE, "user_id": NOWHERE, "created_at": now})
        insert(db, placement_aggregates, {"id": FIRST, "uuid": None}, {"id": FIRST + 1, "uuid": AGGREGATE})
        for aggregate_id in (FIRST, FIRST + 1, NOWHERE):
            for provider in (host, ids["nameless"], NOWHERE):
                row = {"resource_provider_id": provider, "aggregate_id": aggregate_id}
                insert(db, resource_provider_aggregates, row)
        insert(db, resource_provider_traits, {"trait_id": NOWHERE, "resource_provider_id": host})
        insert(db, resource_provider_traits, {"trait_id": 1, "resource_provider_id": NOWHERE})
    return ids


@pytest.fixture
def ids(database, backend):
    return insert_inconsistencies(database, backend.kind)


SEARCHES = (
    "resources=VCPU:1",
    "resources=VCPU:1,DISK_GB:1",
    "resources=VCPU:1&required=HW_CPU_X86_AVX",
    f"resources=VCPU:1&member_of={AGGREGATE}",
    "resources=VCPU:1&required=!HW_CPU_X86_AVX",
    "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=none",
    "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=isolate&same_subtree=_A,_B",
    "resources_A=VCPU:1&root_required=HW_CPU_X86_AVX",
)


def test_searches_find_every_consistent_provider(database, ids):
    call = placement(database)
    for search in SEARCHES:
        answer = call("GET", f"/allocation_candidates?{search}", minor=39)
        assert answer.status == 200, (search, answer)
        summaries = answer.body["provider_summaries"]
        if "!" not in search and "_B" not in search:
            assert CONSISTENT in summaries, search
    listed = call("GET", "/resource_providers", minor=39)
    assert {provider["uuid"] for provider in listed.body["resource_providers"]} == {CONSISTENT, *INCONSISTENT.values()}


def test_an_inconsistency_is_logged_once_and_briefly(database, ids, caplog, monkeypatch):
    monkeypatch.setattr(inconsistent, "_logged", {})
    for _ in range(2):
        database.snapshot(load_index)
    messages = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    for name in ("no generation", "child without root", "child with a wrong root", "no such parent", "own parent"):
        assert sum(INCONSISTENT[name] in line for line in messages) == 1, name
    assert any(str(NOWHERE) in line for line in messages)
    assert len(messages) < 20
    assert all(len(line) < 1000 for line in messages)


def test_a_refreshed_index_equals_a_rebuilt_index(database, ids):
    indexed = database.snapshot(load_index)
    call = placement(database)
    for name, provider_uuid in INCONSISTENT.items():
        call("PUT", f"/resource_providers/{provider_uuid}", minor=39, body={"name": f"{name} again"})
        call("PUT", f"/allocations/{uuid.uuid4()}", minor=12, body=claim(provider_uuid))
        indexed = database.snapshot(lambda db, indexed=indexed: refresh_index(db, indexed))
        assert meaning(indexed.snapshot) == meaning(database.snapshot(load_index).snapshot), name


def test_an_unrecorded_child_moves_with_its_parent(database, ids):
    """The feed records only the providers whose row names the root of the moving tree."""
    indexed = database.snapshot(load_index)
    body = {"name": "sound", "parent_provider_uuid": INCONSISTENT["steps of zero"]}
    assert placement(database)("PUT", f"/resource_providers/{CONSISTENT}", body=body).status == 200
    indexed = database.snapshot(lambda db: refresh_index(db, indexed))
    assert meaning(indexed.snapshot) == meaning(database.snapshot(load_index).snapshot)


def claim(provider):
    return {"allocations": {provider: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u"}


def test_an_index_of_inconsistent_rows_is_not_reported_as_different(database, ids, caplog):
    live_index = LiveIndex(database, 1e-9)
    for _ in range(3):
        live_index.current()
    assert "The index differs" not in caplog.text


READS = ("", "/inventories", "/inventories/VCPU", "/usages", "/aggregates", "/traits", "/allocations")


@pytest.mark.parametrize("minor", [0, 6, 39])
def test_no_read_fails(database, ids, minor):
    call = placement(database)
    paths = [
        f"/resource_providers/{provider_uuid}{part}"
        for provider_uuid in (CONSISTENT, *INCONSISTENT.values())
        for part in READS
    ]
    paths += [f"/resource_providers?{search}" for search in (*SEARCHES[:4], "name=nameless", f"in_tree={CONSISTENT}")]
    paths += [f"/resource_providers?in_tree={provider_uuid}" for provider_uuid in INCONSISTENT.values()]
    paths += [
        f"/allocation_candidates?resources=VCPU:1&in_tree={provider_uuid}" for provider_uuid in INCONSISTENT.values()
    ]
    paths += [f"/allocations/{CONSUMER}", "/usages?project_id=p", "/traits", "/resource_classes"]
    for path in paths:
        answer = call("GET", path, minor=minor)
        assert answer.status < 500, (path, answer)


@pytest.fixture
def validating_app(database, ids):
    return validated_service(database)


def validated_service(database, **options):
    """Return the service, whose responses are validated against the OpenAPI documents.

    The documents exclude negative usage, so the row with one is deleted.
    """
    with database.engine.begin() as connection:
        connection.execute(sa.delete(allocations).where(allocations.c.used < 0))
    url = str(database.engine.url.render_as_string(hide_password=False))
    return Described(deploy.loadapp(web.configuration(placement_database__connection=url, **options), database))


def test_the_values_of_the_gauges_are_finite(database, ids):
    for name, amounts in database.snapshot(load_index).snapshot.totals().items():
        assert all(map(math.isfinite, amounts)), name


def test_a_dry_run_shows_the_free_capacity_of_any_provider(validating_app):
    call = caller.inside(validating_app)
    for provider_uuid in (CONSISTENT, *INCONSISTENT.values()):
        tried = call("PUT", f"/allocations/{uuid.uuid4()}?dry_run=true", 12, claim(provider_uuid))
        assert tried.status == 200, (provider_uuid, tried)
        assert provider_uuid in tried.body["room"]


def test_no_write_fails(database, ids):
    call = placement(database)
    changed_inventories = 0
    for name, provider_uuid in INCONSISTENT.items():
        path = f"/resource_providers/{provider_uuid}"

        def generation(path=path):
            return call("GET", path, minor=39).body["generation"]

        def ask(method, path, body=None, name=name):
            answer = call(method, path, minor=36, body=body)
            assert answer.status < 500, (name, method, path, answer)
            return answer

        stock = {"inventories": {"VCPU": {"total": 9}}, "resource_provider_generation": generation()}
        changed_inventories += ask("PUT", f"{path}/inventories", stock).status == 200
        ask("PUT", f"{path}/traits", {"traits": [], "resource_provider_generation": generation()})
        ask("PUT", f"{path}/aggregates", {"aggregates": [AGGREGATE], "resource_provider_generation": generation()})
        ask("PUT", f"/allocations/{uuid.uuid4()}", {**claim(provider_uuid), "consumer_generation": None})
        ask("POST", "/resource_providers", {"name": f"below {name}", "parent_provider_uuid": provider_uuid})
        ask("PUT", path, {"name": name, "parent_provider_uuid": CONSISTENT})
        ask("DELETE", path)
    assert changed_inventories == len(INCONSISTENT) - 2, "an over-committed class, and an unknown class"
    assert call("GET", f"/allocations/{CONSUMER}", minor=36).status == 200
    for method, path, body in (
        ("PUT", f"/allocations/{CONSUMER}", {**claim(CONSISTENT), "consumer_generation": 0}),
        ("DELETE", f"/allocations/{CONSUMER}", None),
        ("DELETE", "/resource_classes/CUSTOM_X", None),
    ):
        assert call(method, path, minor=36, body=body).status < 500


def test_a_step_size_of_zero_or_a_missing_generation_prevents_no_claim(database, ids):
    call = placement(database)
    for name in ("steps of zero", "no generation", "nameless", "no root"):
        answer = call("PUT", f"/allocations/{uuid.uuid4()}", minor=12, body=claim(INCONSISTENT[name]))
        assert answer.status == 204, (name, answer)
    assert call("GET", f"/resource_providers/{INCONSISTENT['no generation']}", minor=39).body["generation"] == 1


def test_a_class_created_with_a_lost_id_gets_its_inventories(database, ids):
    call = placement(database)
    with without_foreign_keys(database) as db:
        insert(db, resource_classes, {"id": NOWHERE, "name": "CUSTOM_LATE"})
    live_index = LiveIndex(database)
    assert "CUSTOM_LATE" in live_index.current().class_ids
    answer = call("GET", "/allocation_candidates?resources=CUSTOM_LATE:1", minor=39)
    assert list(answer.body["provider_summaries"]) == [INCONSISTENT["classless"]]
