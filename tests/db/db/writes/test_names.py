"""Rows of projects, users, consumer types and aggregates: read by each attempt, created for successful requests."""

from __future__ import annotations

import re
import sqlite3
import tempfile
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_provider_aggregates,
    users,
)
from placement.db.upkeep import standard, sweep
from placement.db.writes import names
from placement.db.writes.names import AGGREGATE, CONSUMER_TYPE, PROJECT, USER, Name
from placement.db.writes.transaction import Collision
from tests import clock, made, servers
from tests.conftest import chosen
from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.made import opened

pytestmark = pytest.mark.every_database

NAMED = (projects, users, consumer_types, placement_aggregates)
REFERRING = (allocations, consumers, resource_provider_aggregates)


class Cloud:
    """A service on a database with a host."""

    def __init__(self, database, room=1000):
        self.database, self.call = database, placement(database)
        self.host = str(uuid.uuid4())
        assert self.call("POST", "/resource_providers", 39, {"uuid": self.host, "name": self.host}).status == 200
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": room}}}
        assert self.call("PUT", f"/resource_providers/{self.host}/inventories", 39, body).status == 200

    def holding(self, owner, **more):
        """Return a claim for an owner whose project, user and type have the same name."""
        return {
            "allocations": {self.host: {"resources": {"VCPU": 1}}},
            "project_id": owner,
            "user_id": owner,
            "consumer_generation": None,
            "consumer_type": owner,
            **more,
        }

    def claim(self, owner, call=None, **more):
        """Claim for a new consumer; return the status and the consumer."""
        consumer = str(uuid.uuid4())
        answer = (call or self.call)("PUT", f"/allocations/{consumer}", 39, self.holding(owner, **more))
        return answer.status, consumer

    def owner(self, consumer):
        """Return the project, user and type of the consumer in responses."""
        body = self.call("GET", f"/allocations/{consumer}").body
        return [body.get(name) for name in ("project_id", "user_id", "consumer_type")]

    def put_aggregates(self, aggregates, generation, call=None):
        """Put the host into these aggregates."""
        body = {"resource_provider_generation": generation, "aggregates": aggregates}
        return (call or self.call)("PUT", f"/resource_providers/{self.host}/aggregates", 39, body).status

    def aggregates(self):
        return self.call("GET", f"/resource_providers/{self.host}/aggregates").body["aggregates"]

    def generation(self):
        return self.call("GET", f"/resource_providers/{self.host}").body["generation"]


@pytest.fixture
def cloud(database):
    return Cloud(database)


def lose(database):
    """Delete the names and everything after them, like a database that loses its last commits.

    Return the ids of the deleted rows by table and name.
    """

    def work(db):
        ids = {}
        for table, column in zip(NAMED, ("external_id", "external_id", "name", "uuid"), strict=True):
            ids[table] = {row[1]: row[0] for row in db.execute(sa.select(table.c.id, table.c[column]))}
        for table in (*REFERRING, *NAMED):
            db.execute(sa.delete(table))
        return ids

    return database.write(work)


def reassign(database, ids, old, new):
    """Give the ids of a name to another name, as the database does with free ids."""

    def work(db):
        for table, column in zip(NAMED, ("external_id", "external_id", "name", "uuid"), strict=True):
            if old in ids[table]:
                db.execute(sa.insert(table), {"id": ids[table][old], column: new})

    database.write(work)


OWNERS = ["AA", "BB"]
AGGREGATES = ["aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"]


def test_an_owner_whose_ids_were_reassigned_gets_its_own_rows(database, cloud):
    first, second = OWNERS
    assert cloud.claim(first)[0] == 204
    reassign(database, lose(database), first, second)
    with opened(database.url) as elsewhere:
        assert cloud.claim(second, placement(elsewhere))[0] == 204
    status, consumer = cloud.claim(first)
    assert status == 204
    assert cloud.owner(consumer) == [first] * 3
    for owner in OWNERS:
        usages = cloud.call("GET", f"/usages?project_id={owner}&user_id={owner}").body["usages"]
        assert usages == {owner: {"consumer_count": 1, "VCPU": 1}}


def test_a_claim_for_an_owner_whose_rows_are_lost_restores_them(database, cloud):
    """This includes a claim that changes the owner of a consumer, which uses another statement."""
    assert cloud.claim(OWNERS[0])[0] == 204
    lose(database)
    status, consumer = cloud.claim(OWNERS[0])
    assert (status, cloud.owner(consumer)) == (204, [OWNERS[0]] * 3)
    database.write(lambda db: db.execute(sa.update(consumers).values(consumer_type_id=None)))
    database.write(lambda db: [db.execute(sa.delete(table)) for table in NAMED])
    body = cloud.holding(OWNERS[0], consumer_generation=1)
    assert cloud.call("PUT", f"/allocations/{consumer}", 39, body).status == 204
    assert cloud.owner(consumer) == [OWNERS[0]] * 3


def test_an_aggregate_whose_id_was_reassigned_gets_its_own_row(database, cloud):
    first, second = AGGREGATES
    assert cloud.put_aggregates([first], 1) == 200
    reassign(database, lose(database), first, second)
    assert cloud.put_aggregates([first], 2) == 200
    assert cloud.aggregates() == [first]


def test_no_provider_is_in_an_aggregate_without_a_row(database, cloud):
    """No foreign key would refuse the row."""
    assert cloud.put_aggregates(AGGREGATES, 1) == 200
    lose(database)
    assert cloud.put_aggregates(AGGREGATES, 2) == 200
    assert cloud.aggregates() == AGGREGATES
    dangling = sa.select(resource_provider_aggregates.c.aggregate_id).where(
        resource_provider_aggregates.c.aggregate_id.not_in(sa.select(placement_aggregates.c.id))
    )
    assert database.read(lambda db: db.execute(dangling).all()) == []


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_names_lost_by_a_restored_file_are_created_again(database, cloud, tmp_path):
    """Rows are lost by restoring a backup while the service and a second worker are connected."""
    path, backup = database.url.database, tmp_path / "backup"
    with sqlite3.connect(path) as live, sqlite3.connect(backup) as copy:
        live.backup(copy)
    assert cloud.claim(OWNERS[0])[0] == 204
    assert cloud.put_aggregates(AGGREGATES[:1], cloud.generation()) == 200
    with sqlite3.connect(path) as live, sqlite3.connect(backup) as copy:
        copy.backup(live)
    with opened(database.url) as elsewhere:
        other = placement(elsewhere)
        status, other_consumer = cloud.claim(OWNERS[1], other)
        assert status == 204
        assert cloud.put_aggregates(AGGREGATES[1:], cloud.generation(), other) == 200
    status, consumer = cloud.claim(OWNERS[0])
    assert status == 204
    assert cloud.owner(consumer) == [OWNERS[0]] * 3
    assert cloud.owner(other_consumer) == [OWNERS[1]] * 3
    assert cloud.put_aggregates(AGGREGATES[:1], cloud.generation()) == 200
    assert cloud.aggregates() == AGGREGATES[:1]


@pytest.fixture
def losing_server(request):
    """Start a server on a disk: in /dev/shm its log is mapped memory, which survives a crash."""
    if "mariadb" not in chosen(request.config):
        pytest.skip("mariadb is not among --databases")
    with tempfile.TemporaryDirectory(prefix="placement-") as place:
        Path(place).chmod(0o711)  # the server runs as another user
        with servers.private("mariadb", place=Path(place)) as server:
            yield server


@pytest.mark.long  # starts its own server
def test_names_lost_in_the_crash_of_a_server_are_created_again(losing_server):
    """Here the server really loses commits."""
    url = losing_server.create_database()
    with opened(url) as database, opened(url) as elsewhere:
        made.sync(database.engine)
        standard.insert(database)
        cloud, other = Cloud(database), placement(elsewhere)
        with database.engine.connect() as connection:
            for setting in ("innodb_flush_log_at_timeout = 2700", "innodb_flush_log_at_trx_commit = 0"):
                connection.exec_driver_sql(f"SET GLOBAL {setting}")
        assert cloud.claim(OWNERS[0])[0] == 204
        assert cloud.put_aggregates(AGGREGATES[:1], cloud.generation()) == 200
        losing_server.kill()
        losing_server.start()
        assert count_rows(database)["projects"] == 0
        status, other_consumer = cloud.claim(OWNERS[1], other)
        assert status == 204
        assert cloud.put_aggregates(AGGREGATES[1:], cloud.generation(), other) == 200
        status, consumer = cloud.claim(OWNERS[0])
        assert status == 204
        assert (cloud.owner(consumer), cloud.owner(other_consumer)) == ([OWNERS[0]] * 3, [OWNERS[1]] * 3)
        assert cloud.put_aggregates(AGGREGATES[:1], cloud.generation()) == 200
        assert cloud.aggregates() == AGGREGATES[:1]


# --- refused requests ------------------------------------------------------------------------------------------------


def count_rows(database):
    """Return the number of rows, by table."""
    count = sa.func.count()
    return {
        table.name: database.read(lambda db, table=table: db.execute(sa.select(count).select_from(table)).scalar())
        for table in (*NAMED, *REFERRING)
    }


def refused_requests(cloud):
    """Yield refused requests with their descriptions; each contains new names."""
    nowhere, unknown = {str(uuid.uuid4()): {"resources": {"VCPU": 1}}}, {cloud.host: {"resources": {"CUSTOM_NO": 1}}}
    beyond = {cloud.host: {"resources": {"VCPU": 1001}}}
    path = f"/allocations/{uuid.uuid4()}"
    fits = cloud.holding("X")
    put = {
        "unknown provider": fits | {"allocations": nowhere},
        "unknown class": fits | {"allocations": unknown},
        "no room": fits | {"allocations": beyond},
        "generation": fits | {"consumer_generation": 7},
    }
    stock = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 5}}}
    reshape = {"inventories": {cloud.host: stock}, "allocations": {str(uuid.uuid4()): fits | {"allocations": beyond}}}
    claims = {str(uuid.uuid4()): fits, str(uuid.uuid4()): cloud.holding("Y", allocations=beyond)}
    aggregates = {"resource_provider_generation": 7, "aggregates": [str(uuid.uuid4())]}
    yield from ((name, ("PUT", path, 39, body)) for name, body in put.items())
    yield "several consumers", ("POST", "/allocations", 39, claims)
    yield "reshape", ("POST", "/reshaper", 39, reshape)
    yield "aggregates", ("PUT", f"/resource_providers/{cloud.host}/aggregates", 39, aggregates)


def test_a_refused_request_leaves_no_rows(database, cloud):
    before = count_rows(database)
    for name, request in refused_requests(cloud):
        assert cloud.call(*request).status in (400, 409), name
        assert count_rows(database) == before, name


def test_a_request_that_ends_a_consumer_needs_no_owner(database, cloud):
    before = count_rows(database)
    assert cloud.claim("X", allocations={})[0] == 204
    assert count_rows(database) == before


def test_many_new_names_are_created_with_few_statements(database, cloud):
    bodies = {str(uuid.uuid4()): cloud.holding(f"OWNER_{number}") for number in range(300)}
    seen = []
    with sql_hooks.statements(database.engine, seen.append):
        assert cloud.call("POST", "/allocations", 39, bodies).status == 204
    assert len(seen) < 60
    numbers = count_rows(database)
    assert [numbers[table] for table in ("projects", "users", "consumer_types")] == [300] * 3
    owners = {consumer: cloud.owner(consumer) for consumer in list(bodies)[::50]}
    assert owners == {consumer: [bodies[consumer]["project_id"]] * 3 for consumer in owners}


def test_a_prerequisite_is_not_a_failed_attempt(database):
    seen = []

    def work(db):
        seen.append(db.attempt)
        name = Name(PROJECT, "new")
        names.ensure(db, [name], names.find(db, [name]))

    database.write(work, attempts=1)
    assert seen == [1, 1]


def test_a_prerequisite_has_its_own_attempts(database):
    tried = []

    def first(db):
        tried.append(db.attempt)
        if len(tried) < 3:
            raise Collision

    def work(db):
        if len(tried) < 3:
            db.require(first)

    database.write(work, attempts=1)
    assert tried == [1, 2, 3]


# --- equal names -----------------------------------------------------------------------------------------------------


def test_names_that_the_database_considers_equal_share_one_row(database, cloud):
    """MariaDB's usual collations ignore case."""
    bodies = {str(uuid.uuid4()): cloud.holding(owner, consumer_type="T") for owner in ("case", "CASE")}
    assert cloud.call("POST", "/allocations", 39, bodies).status == 204
    status, third = cloud.claim("Case", consumer_type="T")
    assert status == 204
    owners = {name: cloud.owner(consumer)[0] for name, consumer in zip(("case", "CASE"), bodies, strict=True)}
    owners["Case"] = cloud.owner(third)[0]
    if database.engine.dialect.name in ("mysql", "mariadb"):
        assert len(set(owners.values())) == 1
    else:
        assert owners == {name: name for name in owners}


def test_ids_are_found_by_kind_and_name(database):
    """A project and a user with the same name have different ids."""
    expected = [Name(kind, f"name {number}") for kind in (PROJECT, USER) for number in range(150)]
    expected += [Name(CONSUMER_TYPE, "T"), Name(AGGREGATE, AGGREGATES[0])]
    assert database.read(lambda db: names.find(db, expected)) == {}
    database.write(lambda db: names.create(db, expected[::2]))
    ids = database.read(lambda db: names.find(db, expected))
    assert set(ids) == set(expected[::2])
    stored = database.read(lambda db: {row.external_id: row.id for row in db.execute(sa.select(users))})
    assert {name.text: row_id for name, row_id in ids.items() if name.kind == USER} == stored


def test_names_are_created_in_one_order_regardless_of_case(database):
    """Otherwise two transactions deadlock if the collation considers the names equal."""
    made = []

    @sa.event.listens_for(database.engine, "before_execute")
    def see(_connection, statement, many, _parameters, _options):
        if getattr(statement, "table", None) is projects:
            made.extend(row["external_id"] for row in many)

    database.write(lambda db: names.create(db, [Name(PROJECT, text) for text in ("b", "B2", "a", "A2")]))
    assert made == ["a", "A2", "b", "B2"]


# --- unused names ----------------------------------------------------------------------------------------------------


@pytest.fixture
def names_before(database, cloud):
    """Create names, and remove all references to an owner and an aggregate; return all names."""
    _, consumer = cloud.claim("GONE")
    assert cloud.call("DELETE", f"/allocations/{consumer}").status == 204
    assert cloud.put_aggregates(AGGREGATES, cloud.generation()) == 200
    assert cloud.put_aggregates(AGGREGATES[:1], cloud.generation()) == 200
    assert cloud.claim("KEPT")[0] == 204
    return all_names(database)


def all_names(database):
    """Return all names."""
    columns = (projects.c.external_id, users.c.external_id, consumer_types.c.name, placement_aggregates.c.uuid)
    return [
        set(database.read(lambda db, column=column: db.execute(sa.select(column)).scalars().all()))
        for column in columns
    ]


def test_a_sweep_marks_unused_rows_and_the_next_one_removes_them(database, cloud, names_before):
    swept = [(result.removed, result.marked) for result in sweep.sweep(database, grace=0)]
    assert swept == [(0, 1)] * 4
    assert all_names(database) == names_before
    swept = [(result.removed, result.marked) for result in sweep.sweep(database, grace=0)]
    assert swept == [(1, 0)] * 4
    assert all_names(database) == [{"KEPT"}] * 3 + [{AGGREGATES[0]}]


def test_a_consumer_without_a_type_hides_no_unused_type(database, cloud, names_before):
    database.write(lambda db: db.execute(sa.update(consumers).values(consumer_type_id=None)))
    swept = {result.table: result.marked for result in sweep.sweep(database, grace=0)}
    assert swept == {
        "projects": 1,
        "users": 1,
        "consumer_types": 2,
        "placement_aggregates": 1,
    }


def test_a_sweep_covers_every_unused_row(database, monkeypatch):
    """This holds for any number of rows in one transaction."""
    monkeypatch.setattr(sweep, "BATCH_SIZE", 3)
    some = [Name(kind, f"NAME_{number}") for kind in (PROJECT, AGGREGATE) for number in range(8)]
    database.write(lambda db: names.create(db, some))
    assert [result.marked for result in sweep.sweep(database, grace=0)] == [8, 0, 0, 8]
    assert [result.removed for result in sweep.sweep(database, grace=0)] == [8, 0, 0, 8]


def test_a_mark_lasts_longer_than_any_attempt():
    """Attempts may run for a minute, and so may their prerequisites."""
    assert sweep.GRACE == 3600


def test_a_sweep_removes_nothing_that_was_marked_just_now(database, cloud, names_before):
    for _ in range(2):
        swept = sweep.sweep(database)
        assert [result.removed for result in swept] == [0] * 4
    assert all_names(database) == names_before


def test_a_host_whose_clock_is_fast_removes_nothing_too_early(database, cloud, names_before, monkeypatch):
    sweep.sweep(database)
    clock.set_host(monkeypatch, days=1)
    assert [result.removed for result in sweep.sweep(database)] == [0] * 4
    assert all_names(database) == names_before


def test_a_row_in_use_again_is_not_removed(database, cloud, names_before):
    sweep.sweep(database, grace=0)
    status, consumer = cloud.claim("GONE")
    assert status == 204
    assert cloud.put_aggregates(AGGREGATES, cloud.generation()) == 200
    assert [result.removed for result in sweep.sweep(database, grace=0)] == [0] * 4
    assert cloud.owner(consumer) == ["GONE"] * 3
    assert cloud.aggregates() == AGGREGATES


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_row_in_use_again_at_the_last_moment_is_not_removed(database, cloud, names_before):
    """The use begins between the statement that finds unused rows and the one that removes them."""
    sweep.sweep(database, grace=0)
    claimed = []

    def meanwhile(statement):
        if statement.startswith("DELETE FROM projects") and not claimed:
            with opened(database.url) as elsewhere:
                claimed.append(cloud.claim("GONE", placement(elsewhere)))

    with sql_hooks.statements(database.engine, meanwhile):
        sweep.sweep(database, grace=0)
    [(status, consumer)] = claimed
    assert status == 204
    assert cloud.owner(consumer) == ["GONE"] * 3


def test_a_claim_uses_no_marked_row(database, cloud, names_before):
    """The sweep may remove the row before the claim is committed, so another transaction removes the mark first."""
    sweep.sweep(database, grace=0)
    seen = []
    with sql_hooks.statements(database.engine, seen.append):
        assert cloud.claim("GONE")[0] == 204
    kinds = [
        " ".join(statement.split()[:3]) for statement in seen if re.match("INSERT INTO (projects|consumers)", statement)
    ]
    assert kinds == ["INSERT INTO consumers", "INSERT INTO projects", "INSERT INTO consumers"]
