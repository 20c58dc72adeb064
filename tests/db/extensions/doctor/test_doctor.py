"""The doctor: every planted finding is reported, and a fix changes nothing else (docs: doctor)."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import re
import threading
import time
import uuid

import pytest
import sqlalchemy as sa

from placement import errors
from placement.checks.check import Check, NotMadeError, Subject
from placement.checks.finding import Severity, error, info
from placement.cmd import manage
from placement.db import feed
from placement.db.schema import schema, tables
from placement.db.schema.tables import (
    allocations,
    change_writers,
    consumers,
    feed_instance,
    projects,
    provider_changes,
    resource_classes,
    resource_providers,
    traits,
    users,
)
from placement.db.upkeep import standard
from placement.db.writes import notes as event_rows
from placement.extensions.doctor import checks, fixes, server, signals
from placement.extensions.doctor import database as database_checks
from placement.extensions.doctor.examination import OutOfTimeError, examine, reason_without_tables, time_limit
from placement.extensions.v1 import worker_examination
from placement.extensions.v1.history.tables import event_order, events
from placement.index import array_file
from placement.index.live import LiveIndex
from placement.index.position import MAX_GAP, Position
from placement.index.refresh import Base, Contents
from placement.index.store import IndexStore
from tests import children, closed, made, servers, signal_facts, web
from tests.db import lease
from tests.db.extensions.doctor.findings import PLANTED, plants
from tests.db.extensions.event_rows import following
from tests.db.in_process import placement
from tests.index.rewind import without_foreign_keys
from tests.made import opened
from tests.reused_database import NOWHERE

HOST, CHILD, GRANDCHILD, OTHER = (str(uuid.UUID(int=number)) for number in range(1, 5))
ONE, TWO, LEASED = (str(uuid.UUID(int=number)) for number in range(11, 14))
#: Neither a provider nor an aggregate at first.
NEW = str(uuid.UUID(int=31))
#: Planted consumers.
IDLE, OWNERLESS, LOST = (str(uuid.UUID(int=number)) for number in range(21, 24))
#: The id of a missing custom class.
NO_CLASS = standard.FIRST_CUSTOM_ID + NOWHERE
#: Columns and tables whose changes do not matter.
_FEED = {"change_writers", "provider_changes", "feed_instance"} | {
    name for name in tables.metadata.tables if "event" in name
}
_TIMES = {"created_at", "updated_at", "started_at", "seen_at"}


def findings_of(database, *named, conf=None, index=None, **more):
    """Return the findings, by the name of the check."""
    report = examine(Subject(conf or web.configuration(), database, index=index, **more), checks.CHECKS, named)
    return [(check, finding) for check, finding in report.findings]


def names(findings):
    return sorted({check for check, _ in findings})


def rows(database):
    """Return all rows outside of the feed, without times."""

    def rows_of(db, table):
        columns = [column for column in table.c if column.name not in _TIMES]
        return sorted(map(str, db.execute(sa.select(*columns))))

    compared = [table for table in tables.metadata.sorted_tables if table.name not in _FEED]
    return database.read(lambda db: {table.name: rows_of(db, table) for table in compared})


@pytest.fixture
def call(database):
    return placement(database)


@pytest.fixture
def world(database, call):
    """Create two consistent trees, and three consumers, one with a lease; return the ids of the providers by uuid."""

    def succeed(method, path, body, status):
        answer = call(method, path, 39, body)
        assert answer.status == status, answer

    stock = {"VCPU": {"total": 8}, "CUSTOM_FPGA": {"total": 2}}
    succeed("PUT", "/resource_classes/CUSTOM_FPGA", None, 201)
    for provider, parent in ((HOST, None), (CHILD, HOST), (GRANDCHILD, CHILD), (OTHER, None)):
        succeed(
            "POST", "/resource_providers", {"uuid": provider, "name": provider, "parent_provider_uuid": parent}, 200
        )
        body = {"resource_provider_generation": 0, "inventories": stock}
        succeed("PUT", f"/resource_providers/{provider}/inventories", body, 200)
    for consumer in (ONE, TWO, LEASED):
        succeed("PUT", f"/allocations/{consumer}", claim(HOST, GRANDCHILD), 204)
    succeed("POST", f"/v1/claims/{LEASED}/extend", {"expires_in": 3600}, 200)
    ids = database.read(lambda db: db.execute(sa.select(resource_providers.c.uuid, resource_providers.c.id)).all())
    return dict(map(tuple, ids))


def claim(*providers, generation=None):
    return {
        "allocations": {provider: {"resources": {"VCPU": 1}} for provider in providers},
        "project_id": "red",
        "user_id": "ann",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


# --- planted data -----------------------------------------------------------------------------------------------------


def allocation(consumer, provider_id, class_id=0):
    return {"consumer_id": consumer, "resource_provider_id": provider_id, "resource_class_id": class_id, "used": 1}


def over_commitment(db, world):
    db.execute(sa.update(tables.inventories).where(tables.inventories.c.total == 8).values(total=2))


def ownerless(db, world):
    db.execute(sa.insert(allocations), [allocation(OWNERLESS, world[OTHER]), allocation(OWNERLESS, world[CHILD])])


def lost_provider(db, world):
    """Insert allocations on a lost provider: of a consumer without a row, and of one with other allocations."""
    db.execute(sa.insert(allocations), [allocation(LOST, NOWHERE), allocation(ONE, NOWHERE)])


def lost_class(db, world):
    db.execute(
        sa.insert(allocations), [allocation(LOST, world[HOST], NO_CLASS), allocation(TWO, world[HOST], NO_CLASS)]
    )
    db.execute(sa.insert(consumers).values(uuid=LOST, project_id=_project(db), user_id=_user(db)))


def unknown_class(db, world):
    db.execute(sa.insert(allocations), [allocation(ONE, world[HOST], standard.FIRST_CUSTOM_ID - 1)])


def idle(db, world):
    db.execute(sa.insert(consumers).values(uuid=IDLE, project_id=_project(db), user_id=_user(db)))


def without_project(db, world):
    db.execute(sa.update(consumers).where(consumers.c.uuid == ONE).values(project_id=NOWHERE))
    db.execute(sa.update(consumers).where(consumers.c.uuid == TWO).values(user_id=NOWHERE, consumer_type_id=NOWHERE))


def _project(db):
    return db.execute(sa.select(projects.c.id).limit(1)).scalar_one()


def _user(db):
    return db.execute(sa.select(users.c.id).limit(1)).scalar_one()


def _set(db, provider, **columns):
    result = db.execute(sa.update(resource_providers).where(resource_providers.c.uuid == provider).values(**columns))
    assert result.rowcount == 1


def rootless(db, world):
    """Remove the roots of a root provider and of a child."""
    _set(db, OTHER, root_provider_id=None)
    _set(db, GRANDCHILD, root_provider_id=None)


def wrong_root(db, world):
    """Set a root of another tree, and a root that does not exist."""
    _set(db, CHILD, root_provider_id=world[OTHER])
    _set(db, GRANDCHILD, root_provider_id=NOWHERE)


def orphan(db, world):
    _set(db, OTHER, parent_provider_id=NOWHERE)


def orphan_with_children(db, world):
    _set(db, CHILD, parent_provider_id=NOWHERE)


def loop(db, world):
    _set(db, CHILD, parent_provider_id=world[GRANDCHILD])


def own_parent(db, world):
    _set(db, OTHER, parent_provider_id=world[OTHER])


def same_names(db, world):
    _set(db, HOST, name="Compute-1")
    _set(db, OTHER, name="compute-1")


def disabled_provider(db, world):
    trait = db.execute(sa.select(traits.c.id).where(traits.c.name == "COMPUTE_STATUS_DISABLED")).scalar_one()
    for provider in (HOST, OTHER):  # the other provider has no allocations
        db.execute(
            sa.insert(tables.resource_provider_traits).values(trait_id=trait, resource_provider_id=world[provider])
        )


def incomplete(db, world):
    _set(db, HOST, name=None)
    _set(db, OTHER, generation=None)


def impossible(db, world):
    """Store an impossible value of every kind, including an infinite ratio."""
    numbers = [
        {"step_size": 0},
        {"allocation_ratio": 0.0},
        {"total": -8},
        {"reserved": -1, "min_unit": 0, "max_unit": 0},
    ]
    for values, provider in zip(numbers, world, strict=True):
        of_class = (tables.inventories.c.resource_provider_id == world[provider]) & (
            tables.inventories.c.resource_class_id >= standard.FIRST_CUSTOM_ID
        )
        assert db.execute(sa.update(tables.inventories).where(of_class).values(values)).rowcount == 1


def lost_inventory(db, world):
    numbers = {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}
    for place in ((NOWHERE, 0), (world[HOST], NO_CLASS)):
        ids = dict(zip(("resource_provider_id", "resource_class_id"), place, strict=True))
        db.execute(sa.insert(tables.inventories).values(numbers | ids))


def repeated_allocation(db, world):
    """Store three equal allocations, which are one place of the finding."""
    db.execute(sa.insert(allocations), [allocation(ONE, world[HOST])] * 2)


WRITER = 2**21


def gap(db, world):
    db.execute(sa.insert(change_writers).values(id=WRITER))
    numbers = [
        {"writer_id": WRITER, "seq": seq, "provider_id": provider_id, "what": feed.USAGE}
        for seq in (7, 8, 11, 13)
        for provider_id in (1, 2)
    ]
    db.execute(sa.insert(provider_changes), numbers)


def expired_writer(db, world):
    """Insert an expired writer, by the database's clock, which does not depend on this host's time zone."""
    seen = tables.utcnow() - datetime.timedelta(seconds=feed.LIFETIME + 3600)
    db.execute(sa.insert(change_writers).values(id=WRITER, seen_at=seen))
    row = {"writer_id": WRITER, "seq": 7, "provider_id": world[HOST], "what": feed.USAGE}
    db.execute(sa.insert(provider_changes).values(row))


def standard_names(db, world):
    """Delete a class in use, an unused class, and a trait."""
    db.execute(sa.delete(resource_classes).where(resource_classes.c.name.in_(["VCPU", "PCPU"])))
    db.execute(sa.delete(traits).where(traits.c.name == "HW_CPU_X86_AVX"))


def identity(db, world):
    db.execute(sa.delete(feed_instance))


def taken_id(db, world):
    db.execute(sa.update(resource_classes).where(resource_classes.c.name == "PGPU").values(name="CUSTOM_TAKEN"))


#: By name: the planting function, the check, the severity, whether it is fixable, and words of the places.
PLANTS = {
    plant.__name__: (plant, check, severity, fixable, places)
    for plant, check, severity, fixable, places in (
        (over_commitment, "over_commitment", Severity.WARNING, False, [f"{HOST} ({HOST}): VCPU, 3 of 2", GRANDCHILD]),
        (ownerless, "allocations_without_consumer", Severity.WARNING, True, [OWNERLESS]),
        (lost_provider, "lost_allocations", Severity.WARNING, True, [f"{ONE}: provider id {NOWHERE}", LOST]),
        (lost_class, "lost_allocations", Severity.WARNING, True, [f"{TWO}: class id {NO_CLASS}", LOST]),
        (unknown_class, "lost_allocations", Severity.WARNING, False, [f"{ONE}: class id 9999"]),
        (idle, "idle_consumers", Severity.INFO, True, [IDLE]),
        (
            without_project,
            "consumers_without_owner",
            Severity.WARNING,
            False,
            [f"{ONE}: project", f"{TWO}: user, type"],
        ),
        (rootless, "roots", Severity.ERROR, True, [GRANDCHILD, OTHER]),
        (wrong_root, "roots", Severity.ERROR, True, [CHILD, GRANDCHILD]),
        (orphan, "parents", Severity.ERROR, True, [OTHER]),
        (orphan_with_children, "parents", Severity.ERROR, True, [CHILD]),
        (loop, "parents", Severity.ERROR, False, [f"{GRANDCHILD} ({GRANDCHILD}) below {CHILD}"]),
        (own_parent, "parents", Severity.ERROR, False, [f"{OTHER} ({OTHER}) below {OTHER}"]),
        (same_names, "provider_names", Severity.WARNING, False, [f"Compute-1 ({HOST}), compute-1 ({OTHER})"]),
        (incomplete, "incomplete_providers", Severity.WARNING, False, [f"{HOST}): name", f"{OTHER}): generation"]),
        (
            impossible,
            "impossible_inventories",
            Severity.WARNING,
            False,
            ["CUSTOM_FPGA, step_size", "FPGA, allocation_ratio", "FPGA, total", "FPGA, reserved, min_unit, max_unit"],
        ),
        (
            lost_inventory,
            "lost_inventories",
            Severity.WARNING,
            False,
            [f"provider id {NOWHERE}", f"class id {NO_CLASS}"],
        ),
        (
            repeated_allocation,
            "repeated_allocations",
            Severity.WARNING,
            False,
            [f"consumer {ONE}: provider {HOST}, class VCPU"],
        ),
        (disabled_provider, "disabled_providers", Severity.INFO, False, [f"{HOST} ({HOST}): 3 consumers"]),
        (gap, "feed_gaps", Severity.WARNING, False, [f"writer {WRITER}: 9 to 10", f"writer {WRITER}: 12"]),
        (expired_writer, "expired_writers", Severity.INFO, True, [f"writer {WRITER}"]),
        (standard_names, "standard_rows", Severity.ERROR, True, ["VCPU", "PCPU", "HW_CPU_X86_AVX"]),
        (identity, "standard_rows", Severity.ERROR, True, ["feed_instance"]),
        (taken_id, "standard_rows", Severity.ERROR, False, ["CUSTOM_TAKEN instead of PGPU"]),
    )
}
PLANTED.update((check, severity) for _, check, severity, _, _ in PLANTS.values())
#: Further findings of a plant: SQLite reports violated foreign keys; an allocation of a missing class or provider
#: exceeds the capacity; a lost provider leaves a consumer without a row.
BESIDE = {
    "lost_provider": {"allocations_without_consumer"},
    "lost_class": {"over_commitment"},
    "unknown_class": {"over_commitment"},
}
VIOLATED = {"wrong_root", "orphan", "orphan_with_children", "without_project"}


def is_possible(name, kind):
    """Whether the database can contain the finding: MariaDB's collation prevents names that differ only in case."""
    return not (name == "same_names" and kind == "mariadb")


@pytest.fixture
def plant(database, backend, world):
    def plant(*planted):
        with without_foreign_keys(database) as db:
            for name in planted:
                PLANTS[name][0](db, world)

    return plant


@pytest.mark.every_database
def test_a_consistent_database_has_no_finding(database, world, backend):
    subject = Subject(web.configuration(), database, index=LiveIndex(database))
    report = examine(subject, checks.CHECKS)
    assert report.findings == []
    not_made = {result.check for result in report.results if result.not_made}
    of_servers = {"sqlite": {"isolation", "engine", "galera", "connections"}, "mariadb": {"galera"}}
    assert not_made == {"keystone", "metrics_directory"} | of_servers.get(backend.kind, {"engine", "galera"})


@pytest.mark.parametrize("name", PLANTS)
def test_every_planted_inconsistency_is_found(database, backend, plant, name):
    if not is_possible(name, backend.kind):
        with pytest.raises(sa.exc.IntegrityError):
            plant(name)
        return
    plant(name)
    _, check, severity, fixable, places = PLANTS[name]
    findings = findings_of(database)
    of_check = [finding for named, finding in findings if named == check]
    assert {finding.severity for finding in of_check} == {severity}
    assert {finding.fixable for finding in of_check} == {fixable}
    where = [place for finding in of_check for place in finding.where]
    assert len(where) == len(places)
    for place in places:
        assert any(place in line for line in where), (place, where)
    assert all(finding.fix for finding in of_check)
    violated = {"foreign_keys"} if backend.kind == "sqlite" and name in VIOLATED else set()
    assert set(names(findings)) == {check, *BESIDE.get(name, ()), *violated}


def test_a_gap_of_one_number_is_not_a_range(database, plant):
    plant("gap")
    ((_, finding),) = findings_of(database, "feed_gaps")
    assert finding.where == (f"writer {WRITER}: 9 to 10", f"writer {WRITER}: 12")


# --- fixes ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def doctor(tmp_path, database, in_process):
    """Return a function that runs the command on the test's database, and returns its result with the document."""

    def doctor(*words):
        path = tmp_path / "placement.conf"
        url = database.url.render_as_string(hide_password=False)
        path.write_text(
            f"[placement_database]\nconnection = {url}\nmax_retries = 0\n[api]\nauth_strategy = noauth2\n"
            f"[placement]\nindex_directory = {tmp_path / 'index'}\n"
        )
        path.chmod(0o600)
        ran = in_process(manage, "--config-file", str(path), "doctor", *words)
        ran.document = json.loads(ran.out) if "--json" in words else None
        return ran

    return doctor


@pytest.mark.parametrize("named", [[], ["options"], ["clock"]], ids=str)
def test_without_a_database_the_configuration_is_examined(tmp_path, in_process, named):
    path = tmp_path / "placement.conf"
    path.write_text(
        f"[placement_database]\nconnection = mysql+pymysql://placement@{closed.ADDRESS}/placement\nmax_retries = 0\n"
        "[api]\nauth_strategy = noauth2\nno_such_option = 1\n"
    )
    path.chmod(0o600)
    words = [word for name in named for word in ("--check", name)]
    ran = in_process(manage, "--config-file", str(path), "doctor", "--json", *words)
    assert (ran.code, "The database cannot be reached" in ran.err) == (1, True)
    findings = json.loads(ran.out)["findings"] if ran.out else []
    assert [finding["check"] for finding in findings] == ([] if named == ["clock"] else ["options"])


FIXABLE = [name for name, (_, _, _, fixable, _) in PLANTS.items() if fixable]


@pytest.mark.parametrize("name", FIXABLE)
def test_a_fix_resolves_its_finding_and_leaves_consistent_rows_alone(database, plant, doctor, name):
    before = rows(database)
    plant(name)
    planted = rows(database)
    check = PLANTS[name][1]
    ran = doctor("--fix", "--json")
    assert ran.code == (4 if PLANTS[name][2] is Severity.ERROR else 3 if PLANTS[name][2] is Severity.WARNING else 0)
    assert {fix["fixed"] for fix in ran.document["fixes"]} == {None}
    assert check in {fix["check"] for fix in ran.document["fixes"]}
    assert rows(database) == planted, "without --yes nothing changes"
    ran = doctor("--fix", "--yes", "--json")
    assert (ran.code, ran.document["findings"]) == (0, [])
    assert all(fix["fixed"] >= 1 for fix in ran.document["fixes"])
    after = rows(database)
    if name == "ownerless":
        assert after.pop("allocations") == planted["allocations"]
        assert len(after.pop("consumers")) == len(before["consumers"]) + 1
        for kind in ("projects", "users"):
            assert set(after.pop(kind)) > set(before[kind])
        before = {table: rows_of for table, rows_of in before.items() if table in after}
    if name == "lost_provider":  # a consumer without a row first gets one, with the incomplete project and user
        for kind in ("projects", "users"):
            assert set(after[kind]) >= set(before[kind])
            after[kind] = before[kind]
    if name == "orphan_with_children":  # the tree changes
        for tables_of in (after, before):
            providers = tables_of.pop("resource_providers")
            tables_of["other providers"] = [row for row in providers if CHILD not in row and GRANDCHILD not in row]
    if name == "standard_names":  # the database assigns the ids of traits
        assert len(after.pop("traits")) == len(before.pop("traits"))
    assert after == before
    assert findings_of(database, index=LiveIndex(database)) == []
    assert doctor("--fix", "--yes").code == 0, "a second run changes nothing"


#: The changes that a fix records in the feed, with the providers by uuid or id.
FEED_CHANGES = {
    "lost_class": {(HOST, feed.USAGE)},
    "lost_provider": {(NOWHERE, feed.USAGE)},
    "rootless": {(OTHER, feed.SHAPE), (GRANDCHILD, feed.SHAPE)},
    "wrong_root": {(CHILD, feed.SHAPE), (GRANDCHILD, feed.SHAPE)},
    "orphan": {(OTHER, feed.SHAPE)},
    "orphan_with_children": {(CHILD, feed.SHAPE), (GRANDCHILD, feed.SHAPE)},
    "standard_names": {(feed.NO_PROVIDER, feed.NAMES)},
}


@pytest.mark.parametrize("name", FEED_CHANGES)
def test_a_fix_is_recorded_in_the_feed(database, world, plant, doctor, name):
    plant(name)

    def changes_in_feed():
        return {tuple(row) for row in database.read(lambda db: db.execute(sa.select(provider_changes)).all())}

    before = changes_in_feed()
    assert doctor("--fix", "--yes").code == 0
    new = {(provider_id, change) for _, _, provider_id, change in changes_in_feed() - before}
    new.discard((feed.NO_PROVIDER, feed.USAGE))  # the row of its events
    assert new == {(world.get(provider, provider), change) for provider, change in FEED_CHANGES[name]}


#: The events of a fix: kind, uuid or name, and a change.
EXPECTED_EVENTS = {
    "lost_class": {("consumer", LOST, "reason: lost"), ("consumer", TWO, "reason: lost")},
    "lost_provider": {("consumer", LOST, "reason: lost"), ("consumer", ONE, "reason: lost")},
    "ownerless": {("consumer", OWNERLESS, "")},
    "idle": {("consumer", IDLE, "reason: idle")},
    "rootless": {("provider", OTHER, f"root: {OTHER}"), ("provider", GRANDCHILD, f"root: {HOST}")},
    "wrong_root": {("provider", CHILD, f"root: {HOST}"), ("provider", GRANDCHILD, f"root: {HOST}")},
    "orphan": {("provider", OTHER, "reason: no parent")},
    "standard_names": {
        *((event_rows.RESOURCE_CLASS, name, f"name: {name}") for name in ("VCPU", "PCPU")),
        (event_rows.TRAIT, "HW_CPU_X86_AVX", "name: HW_CPU_X86_AVX"),
    },
}


@pytest.mark.parametrize("name", EXPECTED_EVENTS)
def test_a_fix_is_recorded_as_an_event(database, plant, doctor, name):
    plant(name)
    before = len([*following(database)])
    assert doctor("--fix", "--yes").code == 0
    events = [*following(database)][before:]
    for kind, key, words in EXPECTED_EVENTS[name]:
        [event] = [event for event in events if event.kind == kind and key in (event.uuid, event.name)][-1:]
        field, _, value = words.partition(": ")
        assert not field or event.changes[field][1] == value, event
        assert event.request, "the event names the command"


def test_the_index_of_a_worker_follows_fixes(database, plant, doctor):
    plant("rootless", "wrong_root", "lost_class", "lost_provider", "idle")
    index = LiveIndex(database)
    index.current()
    assert doctor("--fix", "--yes").code == 0
    assert findings_of(database, "index", index=index) == []


def test_events_are_in_order_before_their_writer_is_ended(database, world, call, doctor):
    """The events of a deleted writer would be lost."""
    before = database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(events)).scalar())
    assert before
    old = datetime.datetime(2020, 1, 1)
    for _ in range(2):  # first ended, then deleted
        database.write(lambda db: db.execute(sa.update(change_writers).values(seen_at=old)))
        doctor("--fix", "--yes")
    in_order = sa.select(sa.func.sum(event_order.c.events))
    assert database.read(lambda db: db.execute(in_order).scalar()) >= before


def test_all_findings_are_fixed_together(database, backend, plant, doctor):
    """Findings whose fix would affect the use of resources remain."""
    fixed_together = [name for name in FIXABLE if name not in ("rootless", "identity", "orphan")]
    plant(*fixed_together, "disabled_provider")
    ran = doctor("--fix", "--yes", "--json")
    assert {finding["check"] for finding in ran.document["findings"]} <= {"disabled_providers"}
    assert ran.code == 0


def test_allocations_of_a_lost_standard_class_stay(database, plant, doctor):
    """The class is restored with the same id, which makes them consistent again."""
    before = rows(database)
    plant("lost_class", "standard_names")
    assert doctor("--check", "lost_allocations", "--fix", "--yes").code == 0
    standard.insert(database)
    after = rows(database)
    assert (after["allocations"], after["consumers"]) == (before["allocations"], before["consumers"])
    assert findings_of(database) == []


@plants("leases", Severity.WARNING)
def test_overdue_leases_are_released(database, world, doctor):
    lease.expire(database, LEASED, 60)
    assert findings_of(database) == [], "requests have a few minutes to release it"
    lease.expire(database, LEASED, 600)
    [(check, finding)] = findings_of(database)
    assert (check, finding.severity, finding.fixable) == ("leases", Severity.WARNING, True)
    assert finding.where[0].startswith(f"consumer {LEASED}: since 20")
    assert doctor("--fix").code == 3
    assert lease.count(database) == 1
    ran = doctor("--fix", "--yes", "--json")
    assert (ran.code, ran.document["fixes"][0]["fixed"]) == (0, 1)
    assert lease.count(database) == 0


@contextlib.contextmanager
def before_the_lock(engine, work):
    """Call ``work()`` once, before the first statement that locks rows or the database; collect its result."""
    collected = []

    def note(_connection, _cursor, statement, *_):
        if re.search(r"\bFOR (NO KEY )?UPDATE\b|^BEGIN IMMEDIATE", statement) and not collected:
            collected.append(None)
            collected[0] = work()

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield collected
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def test_an_idle_consumer_that_claims_meanwhile_keeps_its_allocations(database, world, call):
    """The rows are locked and read again before they are deleted."""
    claimant, idler = (str(uuid.UUID(int=number)) for number in (1001, 1002))
    with without_foreign_keys(database) as db:
        owner = {"project_id": _project(db), "user_id": _user(db)}
        db.execute(sa.insert(consumers), [{"uuid": consumer, **owner} for consumer in (claimant, idler)])

    def claim_meanwhile():
        return call("PUT", f"/allocations/{claimant}", 39, claim(OTHER, generation=0)).status

    with opened(database.url) as other, before_the_lock(other.engine, claim_meanwhile) as statuses:
        assert sum(fixes._delete_idle(Subject(web.configuration(), other))) == 1
    assert statuses == [204]
    assert {*call("GET", f"/allocations/{claimant}", 39).body["allocations"]} == {OTHER}
    assert findings_of(database, "idle_consumers", "allocations_without_consumer") == []


def test_consumers_that_claim_while_idle_consumers_are_deleted_keep_their_allocations(database, world, call):
    uuids = [str(uuid.UUID(int=1000 + number)) for number in range(60)]
    with without_foreign_keys(database) as db:
        owner = {"project_id": _project(db), "user_id": _user(db)}
        db.execute(sa.insert(consumers), [{"uuid": consumer, **owner} for consumer in uuids])
        db.execute(sa.update(tables.inventories).values(total=1000, max_unit=1000))
    answers = {}

    def claims():
        for consumer in uuids:
            answers[consumer] = call("PUT", f"/allocations/{consumer}", 39, claim(OTHER))

    thread = threading.Thread(target=claims)
    thread.start()
    subject = Subject(web.configuration(), database)
    while thread.is_alive():
        sum(fixes._delete_idle(subject))
    thread.join()
    sum(fixes._delete_idle(subject))
    assert {answer.status for answer in answers.values()} <= {204, 409}
    for consumer, answer in answers.items():
        reply = call("GET", f"/allocations/{consumer}", 39)
        assert (reply.body["allocations"] != {}) == (answer.status == 204), consumer
    assert findings_of(database, "idle_consumers", "allocations_without_consumer") == []


def test_a_consumer_that_claims_meanwhile_loses_only_its_lost_allocations(database, world, call):
    uuids = [str(uuid.UUID(int=1000 + number)) for number in range(40)]
    with without_foreign_keys(database) as db:
        db.execute(sa.update(tables.inventories).values(total=1000, max_unit=1000))
    for consumer in uuids:
        assert call("PUT", f"/allocations/{consumer}", 39, claim(HOST)).status == 204
    with without_foreign_keys(database) as db:
        db.execute(sa.insert(allocations), [allocation(consumer, NOWHERE) for consumer in uuids])
    answers = {}

    def claims():
        for consumer in uuids:
            answers[consumer] = call("PUT", f"/allocations/{consumer}", 39, claim(OTHER, generation=1))

    thread = threading.Thread(target=claims)
    thread.start()
    subject = Subject(web.configuration(), database)
    while thread.is_alive():
        sum(fixes._release_lost(subject))
    thread.join()
    sum(fixes._release_lost(subject))
    assert {answer.status for answer in answers.values()} <= {204, 409}
    for consumer, answer in answers.items():
        held = call("GET", f"/allocations/{consumer}", 39).body["allocations"]
        assert {*held} == {OTHER if answer.status == 204 else HOST}, consumer
    assert findings_of(database) == []


def test_roots_are_corrected_while_providers_move(database, world, call):
    """In the end each provider has the root of its parent, even if parents move meanwhile."""
    stop = threading.Event()
    statuses = set()

    def moves():
        parents = [OTHER, HOST]
        while not stop.is_set():
            parents.reverse()
            body = {"name": CHILD, "parent_provider_uuid": parents[0]}
            statuses.add(call("PUT", f"/resource_providers/{CHILD}", 39, body).status)

    thread = threading.Thread(target=moves)
    thread.start()
    subject = Subject(web.configuration(), database)
    for number in range(1000):
        if number >= 15 and 200 in statuses:
            break
        with without_foreign_keys(database) as db:
            _set(db, GRANDCHILD, root_provider_id=None)
        sum(fixes._correct_roots(subject))
    stop.set()
    thread.join()
    sum(fixes._correct_roots(subject))
    assert findings_of(database, "roots", "parents") == []
    assert statuses <= {200, 409}
    assert 200 in statuses


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_move_between_the_check_and_the_lock_is_respected(database, world, call):
    with without_foreign_keys(database) as db:
        _set(db, GRANDCHILD, root_provider_id=None)

    def move():
        body = {"name": CHILD, "parent_provider_uuid": OTHER}
        return call("PUT", f"/resource_providers/{CHILD}", 39, body).status

    with opened(database.url) as other, before_the_lock(other.engine, move) as statuses:
        assert sum(fixes._correct_roots(Subject(web.configuration(), other))) == 1
    assert statuses == [200]
    assert findings_of(database, "roots", "parents") == []


@pytest.mark.parametrize(("planted", "moved"), [("loop", CHILD), ("own_parent", OTHER)])
def test_a_loop_is_fixed_as_the_finding_advises(database, plant, call, planted, moved):
    plant(planted)
    body = {"name": moved, "parent_provider_uuid": None}
    answer = call("PUT", f"/resource_providers/{moved}", 39, body)
    assert answer.status == 200, answer
    assert findings_of(database, "parents") == []


def test_an_orphan_becomes_a_root(database, plant, call, doctor):
    """The orphan becomes the root of its descendants."""
    plant("orphan_with_children")
    assert doctor("--check", "parents", "--fix", "--yes").code == 0
    assert findings_of(database) == []
    providers = {
        provider["uuid"]: provider for provider in call("GET", "/resource_providers", 39).body["resource_providers"]
    }
    assert (providers[CHILD]["parent_provider_uuid"], providers[CHILD]["root_provider_uuid"]) == (None, CHILD)
    assert (providers[GRANDCHILD]["parent_provider_uuid"], providers[GRANDCHILD]["root_provider_uuid"]) == (
        CHILD,
        CHILD,
    )
    body = {"name": CHILD, "parent_provider_uuid": HOST}
    assert call("PUT", f"/resource_providers/{CHILD}", 39, body).status == 200
    assert findings_of(database) == []


def test_tables_are_read_in_batches(database, plant, monkeypatch):
    monkeypatch.setattr("placement.checks.check.BATCH", 2)
    plant("lost_provider", "lost_class", "idle", "ownerless", "disabled_provider")
    by_batches = findings_of(database)
    monkeypatch.setattr("placement.checks.check.BATCH", 1000)
    assert by_batches == findings_of(database)


# --- the database -----------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(database_url):
    """Return a separate database, whose schema the test may change."""
    with opened(database_url) as fresh:
        made.sync(fresh.engine)
        standard.insert(fresh)
        yield fresh


def run(database, *statements):
    with database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize(
    "check",
    [
        reason_without_tables,
        lambda subject: [*database_checks.revision(subject)],
        # The check foreign_keys calls this function after another read.
        lambda subject: [*database_checks._unchecked_keys(subject)],
    ],
    ids=["lacking", "revision", "foreign_keys"],
)
def test_a_check_waits_while_another_thread_uses_the_only_connection(check):
    """Otherwise returning the connection of the check would roll back the transaction of the thread."""
    with opened("sqlite://") as database:
        made.sync(database.engine)
        standard.insert(database)
        findings, users_of_connection = [], []
        doctor = threading.Thread(target=lambda: findings.append(check(Subject(web.configuration(), database))))

        def read(db):
            db.execute(sa.select(1))
            with on_checkout(database, lambda: users_of_connection.append(threading.current_thread())):
                doctor.start()
                doctor.join(0.5)  # the doctor waits for the connection

        database.read(read)
        doctor.join(children.PATIENCE)
    assert users_of_connection == []
    assert len(findings) == 1
    assert not findings[0]


@contextlib.contextmanager
def on_checkout(database, act):
    """Call ``act`` whenever a thread checks out a connection."""

    def notify(*_):
        act()

    pools = {database.engine.pool, database.reading_engine.pool}
    for pool in pools:
        sa.event.listen(pool, "checkout", notify)
    try:
        yield
    finally:
        for pool in pools:
            sa.event.remove(pool, "checkout", notify)


@plants("revision", Severity.ERROR)
def test_an_older_revision_is_found(fresh):
    schema.stamp(fresh.engine, "a082b8bb98d0")
    report = examine(Subject(web.configuration(), fresh), checks.CHECKS)
    [(check, finding)] = report.findings
    assert (check, finding.severity, finding.fix) == ("revision", Severity.ERROR, "placement-manage db sync")
    reasons = {result.not_made for result in report.results if result.check in ("roots", "standard_rows")}
    assert reasons == {"The database does not have the tables that this version requires: run the check 'revision'."}


def test_a_check_that_could_not_run_is_reported(fresh):
    """A run of this check alone would otherwise print "No finding"."""
    fresh.write(lambda db: db.execute(sa.text("DROP TABLE usage_samples")))
    report = examine(Subject(web.configuration(), fresh), checks.CHECKS, ["roots"])
    assert report.worst is Severity.WARNING
    assert [result.not_made for result in report.results] != [None]


@pytest.mark.parametrize("kind", ["not UTF-8", "a directory"])
def test_an_error_in_one_file_does_not_hide_the_findings_of_other_files(database, world, tmp_path, kind):
    policy = tmp_path / "policy.yaml"
    policy.mkdir() if kind == "a directory" else policy.write_bytes(b"\xff")
    conf = web.configuration()
    conf.set_override("policy_file", str(policy), "oslo_policy")
    findings = findings_of(database, conf=conf)
    assert {"policy"} <= set(names(findings)) <= {"policy", "policy_format"}


def test_a_failed_check_is_reported_and_the_others_run(database, world, caplog):
    """The reason is only logged: it may contain secrets of the configuration."""

    def fail(_subject):
        raise KeyError("a secret")

    report = examine(Subject(web.configuration(), database), [Check("broken", fail, "data"), *checks.CHECKS])
    [(name, finding)] = report.findings
    assert (name, finding.severity) == ("broken", Severity.ERROR)
    assert "KeyError" in finding.what
    assert "a secret" not in finding.what
    assert "a secret" in caplog.text
    assert len(report.results) == 1 + len(checks.CHECKS)


@pytest.fixture
def counts():
    """Record the numbers that examinations publish."""
    with signal_facts.collect(signals.examined) as counts:
        yield counts


def test_an_examination_publishes_its_findings(database, counts):
    def several(_subject):
        yield error("a")
        yield error("b")
        yield info("c")

    def none(_subject):
        return ()

    def not_made(_subject):
        raise NotMadeError("not here")

    made = [Check("several", several, "data"), Check("none", none, "data"), Check("not_made", not_made, "data")]
    examine(Subject(web.configuration(), database), made)
    of_none = {("none", severity): 0 for severity in ("info", "warning", "error")}
    assert counts == [{("several", "error"): 2, ("several", "warning"): 0, ("several", "info"): 1, **of_none}]


def test_a_check_left_out_by_default_runs_and_is_counted_only_if_named(database, counts):
    subject, check = Subject(web.configuration(), database), Check("one", lambda _: (), "data", needs_tables=False)
    made = [examine(subject, [check], named, {"one": "why"}).results[0].not_made for named in ((), ["one"])]
    assert made == ["why", None]
    assert counts == [{}, {("one", severity): 0 for severity in ("info", "warning", "error")}]


def test_a_table_that_was_dropped_is_found(fresh):
    run(fresh, "DROP TABLE feed_instance")
    [(check, finding)] = findings_of(fresh)
    assert (check, finding.severity, finding.where) == ("revision", Severity.ERROR, ("feed_instance",))


@plants("revision", Severity.WARNING)
def test_a_newer_revision_is_a_warning(fresh):
    run(fresh, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    [(check, finding)] = findings_of(fresh)
    assert (check, finding.severity) == ("revision", Severity.WARNING)


def test_an_empty_database_is_found(database_url):
    with opened(database_url) as empty:
        [(check, finding)] = findings_of(empty)
    assert (check, finding.severity, finding.fix) == ("revision", Severity.ERROR, "placement-manage db sync")


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@plants("isolation", Severity.ERROR)
def test_a_wrong_isolation_level_is_found(database, backend):
    def serializable(connection, _record, _fairy):
        if backend.kind == "postgresql":
            connection.isolation_level = 4
            return
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")

    sa.event.listen(database.engine, "checkout", serializable)
    [(check, finding)] = findings_of(database)
    assert (check, finding.severity) == ("isolation", Severity.ERROR)
    assert finding.where == ("sessions for writes: SERIALIZABLE instead of READ COMMITTED",)


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@plants("engine", Severity.ERROR)
def test_a_table_without_transactions_is_found(fresh):
    run(fresh, "ALTER TABLE feed_instance ENGINE=MyISAM")
    [(check, finding)] = findings_of(fresh)
    assert (check, finding.severity, finding.where) == ("engine", Severity.ERROR, ("feed_instance: MyISAM",))
    run(fresh, finding.fix)
    assert findings_of(fresh) == []


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_missing_foreign_key_is_found(fresh, backend):
    word = "FOREIGN KEY" if backend.kind == "mariadb" else "CONSTRAINT"
    run(fresh, f"ALTER TABLE consumers DROP {word} consumers_consumer_type_id_fkey")
    [(check, finding)] = findings_of(fresh)
    assert (check, finding.severity) == ("foreign_keys", Severity.WARNING)
    assert finding.where == ("consumers (consumer_type_id) -> consumer_types (id)",)
    run(
        fresh,
        f"ALTER TABLE claims DROP {word} claims_consumer_id_fkey",
        "ALTER TABLE claims ADD CONSTRAINT other FOREIGN KEY (consumer_id) REFERENCES consumers (id)",
    )
    ours, _ = (finding for _, finding in findings_of(fresh))
    assert ours.severity is Severity.ERROR
    assert ours.where == ("claims (consumer_id) -> consumers (id)",), "without ON DELETE CASCADE it is a different key"


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
class TestSQLite:
    def test_a_missing_foreign_key_of_sqlite_is_found(self, fresh):
        columns = (
            "writer_id INTEGER NOT NULL, seq BIGINT NOT NULL, provider_id INTEGER NOT NULL, what VARCHAR(8) NOT NULL"
        )
        run(fresh, "DROP TABLE provider_changes", f"CREATE TABLE provider_changes ({columns})")
        [(check, finding)] = findings_of(fresh)
        assert (check, finding.severity) == ("foreign_keys", Severity.ERROR)
        assert finding.where == ("provider_changes (writer_id) -> change_writers (id)",)

    @plants("foreign_keys", Severity.ERROR)
    def test_connections_that_do_not_check_foreign_keys_are_found(self, database):
        def disable_checks(connection, *_):
            connection.execute("PRAGMA foreign_keys = OFF")

        sa.event.listen(database.engine, "checkout", disable_checks)
        [(check, finding)] = findings_of(database)
        assert (check, finding.severity, finding.where) == (
            *("foreign_keys", Severity.ERROR),
            ("connections for writes",),
        )

    @plants("foreign_keys", Severity.WARNING)
    def test_violated_foreign_keys_are_found(self, database, plant):
        plant("orphan")
        findings = dict(findings_of(database))
        [place] = findings["foreign_keys"].where
        assert place.startswith("resource_providers, row ")


SHIFTED = {
    "mariadb": ["SET SESSION timestamp = UNIX_TIMESTAMP() + 60"],
    "postgresql": [
        "CREATE SCHEMA IF NOT EXISTS ahead",
        "CREATE OR REPLACE FUNCTION ahead.statement_timestamp() RETURNS timestamptz LANGUAGE sql AS "
        "$$ SELECT pg_catalog.clock_timestamp() + interval '60 s' $$",
        "SET search_path = ahead, pg_catalog, public",
    ],
}


@pytest.mark.every_database
@plants("clock", Severity.WARNING)
def test_a_database_clock_that_is_ahead_is_found(fresh, backend):
    def ahead(connection, *_):
        if backend.kind == "sqlite":
            now = lambda *_: (tables.utcnow() + datetime.timedelta(seconds=60)).strftime("%Y-%m-%d %H:%M:%S.%f")  # noqa: E731
            connection.create_function("strftime", 2, now)
            return
        with connection.cursor() as cursor:
            for statement in SHIFTED[backend.kind]:
                cursor.execute(statement)

    sa.event.listen(fresh.reading_engine, "checkout", ahead)
    findings = dict(findings_of(fresh, "clock"))
    assert findings["clock"].severity is Severity.WARNING
    assert " seconds behind the clock of the database" in findings["clock"].what


@pytest.mark.parametrize("private_server", ["mariadb", "postgresql"], indirect=True)
@plants("connections", Severity.WARNING)
def test_a_server_with_few_connections_left_is_found(private_server):
    url = private_server.create_database()
    with opened(url, pool_size=0) as database:
        made.sync(database.engine)
        is_mariadb = private_server.kind == "mariadb"
        count_connections = server._mysql_connections if is_mariadb else server._postgresql_connections
        used, limit = count_connections(Subject(web.configuration(), database))
        with contextlib.ExitStack() as connections:
            for _ in range(int(limit * 0.85) - used):
                connections.enter_context(database.engine.connect())
            [(check, finding)] = findings_of(database, "connections")
    assert (check, finding.severity) == ("connections", Severity.WARNING)
    assert f"of the {limit} connections" in finding.what


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@plants("connections", Severity.INFO)
def test_pools_that_are_larger_than_the_server_are_found(database):
    with opened(database.url, pool_size=5000) as greedy:
        [(check, finding)] = findings_of(greedy)
    assert (check, finding.severity) == ("connections", Severity.INFO)
    assert "one process on this host may open 10021 connections" in finding.what


def test_a_node_of_a_cluster_is_examined(pair):
    node, _ = pair.databases
    findings = findings_of(node, "galera")
    assert [finding.severity for _, finding in findings] == [Severity.INFO], "two nodes have no majority if one fails"
    run(node, "SET GLOBAL wsrep_desync = ON")
    try:
        findings = findings_of(node, "galera")
        assert findings[0][1].severity is Severity.WARNING
        assert "not synchronised (Donor/Desynced)" in findings[0][1].what
    finally:
        run(node, "SET GLOBAL wsrep_desync = OFF")


# --- the index, and the route -----------------------------------------------------------------------------------------


@plants("index", Severity.ERROR)
def test_an_index_that_differs_from_the_database_is_found(database, world):
    index = LiveIndex(database)
    index.current()
    run(database, f"UPDATE resource_providers SET generation = generation + 5 WHERE uuid = '{HOST}'")
    [(check, finding)] = findings_of(database, index=index)
    assert (check, finding.severity, finding.fix) == ("index", Severity.ERROR, "placement-manage db restored")
    assert len(finding.where) == 1
    standard.renew(database)
    assert findings_of(database, index=index) == []


@pytest.fixture
def store(tmp_path, database, world):
    """An index file of the database."""
    store = IndexStore(tmp_path / "index")
    store.save(Base.build(database.snapshot(Contents.read)))
    return store


def file_of(database, store):
    return store.path(database.read(Position.now).instance)


@pytest.mark.every_database
def test_an_index_file_that_the_feed_completes_has_no_finding(database, store, call, world):
    tree = {"uuid": NEW, "name": "new", "parent_provider_uuid": CHILD}
    for method, path, body in (
        ("POST", "/resource_providers", tree),
        ("PUT", f"/resource_providers/{NEW}/traits", {"resource_provider_generation": 0, "traits": ["HW_CPU_X86_AVX"]}),
        ("PUT", f"/resource_providers/{OTHER}/aggregates", {"resource_provider_generation": 1, "aggregates": [NEW]}),
        ("PUT", f"/resource_providers/{CHILD}/inventories/VCPU", {"resource_provider_generation": 1, "total": 3}),
        ("DELETE", f"/resource_providers/{CHILD}/inventories/CUSTOM_FPGA", None),
        ("PUT", "/resource_classes/CUSTOM_NEW", None),
        ("PUT", f"/allocations/{IDLE}", claim(OTHER)),
        ("DELETE", f"/allocations/{ONE}", None),
    ):
        assert call(method, path, 39, body).status < 300, path
    [result] = examine(Subject(web.configuration(), database, store=store), checks.CHECKS, ["index"]).results
    assert (result.findings, result.not_made) == ([], None)


#: Changes of rows by hand, by name: the changing statement and the place of the finding.
CHANGES_BY_HAND = {
    "name": (f"UPDATE resource_providers SET name = 'other' WHERE uuid = '{HOST}'", f"{HOST}: name"),
    "no name": (f"UPDATE resource_providers SET name = NULL WHERE uuid = '{HOST}'", f"{HOST}: name"),
    "uuid": (f"UPDATE resource_providers SET uuid = '{NEW}' WHERE uuid = '{OTHER}'", f"{NEW}: uuid"),
    "generation": (f"UPDATE resource_providers SET generation = 77 WHERE uuid = '{HOST}'", f"{HOST}: generation"),
    "parent": (
        f"UPDATE resource_providers SET parent_provider_id = {{{HOST}}} WHERE uuid = '{GRANDCHILD}'",
        f"{GRANDCHILD}: parent",
    ),
    "tree": (
        f"UPDATE resource_providers SET parent_provider_id = {{{HOST}}}, root_provider_id = {{{HOST}}} "
        f"WHERE uuid = '{OTHER}'",
        f"{OTHER}: parent, root",
    ),
    "inventory": (
        f"UPDATE inventories SET step_size = 2 WHERE resource_provider_id = {{{HOST}}} AND resource_class_id = 0",
        f"{HOST}: inventories",
    ),
    "no inventory": (
        f"DELETE FROM inventories WHERE resource_provider_id = {{{OTHER}}} AND resource_class_id = 0",
        f"{OTHER}: inventories, usages",
    ),
    "usage": (
        f"UPDATE allocations SET used = 2 WHERE resource_provider_id = {{{HOST}}} AND consumer_id = '{ONE}'",
        f"{HOST}: usages",
    ),
    "trait": (
        "INSERT INTO resource_provider_traits (trait_id, resource_provider_id) "
        f"SELECT id, {{{OTHER}}} FROM traits WHERE name = 'HW_CPU_X86_AVX'",
        f"{OTHER}: traits",
    ),
    "aggregate": (
        "INSERT INTO resource_provider_aggregates (aggregate_id, resource_provider_id) "
        f"SELECT id, {{{OTHER}}} FROM placement_aggregates",
        f"{OTHER}: aggregates",
    ),
    "no provider": (f"DELETE FROM resource_providers WHERE uuid = '{OTHER}'", f"{OTHER}: existence"),
    "new provider": (
        f"INSERT INTO resource_providers (uuid, name, generation) VALUES ('{NEW}', 'new', 0)",
        f"{NEW}: existence",
    ),
    "class": (
        "UPDATE resource_classes SET name = 'CUSTOM_GPU' WHERE name = 'CUSTOM_FPGA'",
        f"resource class {standard.FIRST_CUSTOM_ID}: name",
    ),
}


@pytest.mark.parametrize("name", CHANGES_BY_HAND)
@plants("index", Severity.ERROR)
def test_each_difference_between_the_index_file_and_the_database_is_found(database, store, call, world, name):
    body = {"resource_provider_generation": 1, "aggregates": [NEW]}
    assert call("PUT", f"/resource_providers/{CHILD}/aggregates", 39, body).status == 200
    assert findings_of(database, "index", store=store) == []
    statement, place = CHANGES_BY_HAND[name]
    with without_foreign_keys(database) as db:
        assert db.exec_driver_sql(statement.format_map(world)).rowcount == 1
    [(_, finding)] = findings_of(database, "index", store=store)
    assert finding.where == (place,)
    assert finding.fix == "placement-manage db restored"


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def replace_by_foreign_file(path):
    arrays, facts = array_file.read(path)
    path.unlink()
    array_file.write(path, arrays, facts | {"instance": NEW})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (flip_a_bit, "is damaged"),
        (lambda path: path.write_bytes(b""), "it is too short"),
        (lambda path: path.write_text("An index is a file of arrays"), "it is not an index"),
        (replace_by_foreign_file, "it belongs to another database or release"),
    ],
)
@plants("index", Severity.WARNING)
def test_an_index_file_that_is_not_used_is_found(database, store, damage, reason):
    path = file_of(database, store)
    damage(path)
    [(_, finding)] = findings_of(database, "index", store=store)
    assert (finding.severity, reason in finding.what) == (Severity.WARNING, True)
    assert (finding.where, finding.fix) == ((str(path),), f"rm {path}")


def make_writable_by_all(directory):
    directory.mkdir()
    directory.chmod(0o777)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(make_writable_by_all, "(mode 777)"), (lambda directory: directory.write_text(""), "it is a file")],
)
@plants("index", Severity.WARNING)
def test_a_directory_that_the_workers_do_not_use_is_found(database, tmp_path, world, make, reason):
    directory = tmp_path / "index"
    make(directory)
    index = LiveIndex(database, store=IndexStore(directory))
    index.current()
    for subject in ({"index": index}, {"store": IndexStore(directory)}):
        [(_, finding)] = findings_of(database, "index", **subject)
        assert finding.severity is Severity.WARNING
        assert str(directory) in finding.what
        assert reason in finding.what


def test_an_index_file_in_a_directory_that_does_not_exist_is_not_compared(database, tmp_path, world):
    (tmp_path / "file").write_text("")
    subject = Subject(web.configuration(), database, store=IndexStore(tmp_path / "file" / "index"))
    [result] = examine(subject, checks.CHECKS, ["index"]).results
    assert result.not_made.endswith("cannot be read: Not a directory.")


@plants("index", Severity.INFO)
def test_an_old_index_file_is_an_info(database, tmp_path, world):
    store, base = IndexStore(tmp_path / "old"), Base.build(database.snapshot(Contents.read))
    old = dataclasses.replace(base.position, at=base.position.at - MAX_GAP)
    store.save(base._replace(position=old))
    [(_, finding)] = findings_of(database, "index", store=store)
    assert (finding.severity, "cannot be followed" in finding.what) == (Severity.INFO, True)


def test_without_an_index_file_the_check_is_skipped(database, tmp_path, world):
    directory = tmp_path / "index"
    subject = Subject(web.configuration(), database, store=IndexStore(directory))
    [result] = examine(subject, checks.CHECKS, ["index"]).results
    assert str(directory) in result.not_made
    assert not directory.exists(), "the doctor creates nothing"


def test_a_worker_shows_its_findings(database, plant, monkeypatch):
    monkeypatch.setattr(worker_examination, "MAX_SECONDS", 3600.0)
    call = placement(database, LiveIndex(database))
    answer = call("GET", "/v1/doctor")
    assert (answer.status, answer.body["findings"]) == (200, [])
    assert [check["name"] for check in answer.body["checks"]] == list(checks.NAMES)
    plant("lost_provider")
    call("GET", "/allocation_candidates?resources=VCPU:1", 39)
    [finding] = call("GET", "/v1/doctor?check=lost_allocations&check=roots").body["findings"]
    assert finding["where"] == [f"consumer {consumer}: provider id {NOWHERE}" for consumer in (ONE, LOST)]
    assert (finding["count"], finding["fixable"], finding["severity"]) == (2, True, "warning")


def test_a_worker_without_a_database_still_checks_its_configuration():
    nowhere = f"mysql+pymysql://someone@127.0.0.1:{children.free_port()}/placement"
    with opened(nowhere) as database:
        assert findings_of(database, "options", "secrets") == []
        with pytest.raises(errors.Unavailable):
            findings_of(database, "options", "roots")
        with pytest.raises(errors.Unavailable):
            findings_of(database, "revision")


def test_an_examination_by_a_worker_ends_in_time(database, monkeypatch):
    monkeypatch.setattr(worker_examination, "MAX_SECONDS", 0.0)
    answer = placement(database)("GET", "/v1/doctor")
    reasons = {check["not_made"] for check in answer.body["checks"] if check["name"] != "keystone"}
    assert reasons == {"The time limit of the request was reached. placement-manage doctor has no limit."}


def test_a_check_ends_between_two_statements(database, plant, monkeypatch):
    monkeypatch.setattr("placement.checks.check.BATCH", 1)
    plant("lost_provider")
    subject = Subject(web.configuration(), database, on_rows=time_limit(time.monotonic() + 3600))
    batches = subject.ranges(allocations.c.id)
    next(batches)
    subject.on_rows = time_limit(time.monotonic() - 1)
    with pytest.raises(OutOfTimeError):
        next(batches)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True)
class TestCommand:
    def test_a_run_without_findings_exits_with_0(self, doctor, world):
        ran = doctor()
        assert ran.code == 0
        assert "| No findings. " in ran.out
        assert "| Skipped: index " in ran.out

    def test_the_table_contains_each_finding(self, doctor, plant):
        plant("idle", "gap")
        ran = doctor()
        assert ran.code == 3
        assert f"|   {IDLE} " in ran.out
        assert ran.out.index("Warning: feed_gaps") < ran.out.index("Info: idle_consumers"), "the worst comes first"

    def test_information_alone_exits_with_0(self, doctor, plant):
        plant("idle")
        assert doctor().code == 0

    def test_the_index_file_is_compared(self, database, doctor, store):
        assert "Skipped: index " not in doctor().out
        run(database, f"UPDATE resource_providers SET name = 'other' WHERE uuid = '{HOST}'")
        ran = doctor("--json")
        assert (ran.code, [finding["where"] for finding in ran.document["findings"]]) == (4, [[f"{HOST}: name"]])

    def test_checks_can_be_selected(self, doctor, plant):
        plant("idle", "gap")
        ran = doctor("--check", "idle_consumers", "--check", "roots", "--json")
        assert [check["name"] for check in ran.document["checks"]] == ["roots", "idle_consumers"]
        assert (ran.code, len(ran.document["findings"])) == (0, 1)

    def test_one_check_can_be_fixed(self, database, doctor, plant):
        plant("idle", "lost_provider")
        assert doctor("--check", "idle_consumers", "--fix", "--yes").code == 0
        assert names(findings_of(database)) == ["allocations_without_consumer", "lost_allocations"]

    def test_the_table_shows_twenty_places_and_json_all_of_them(self, database, doctor, world):
        with without_foreign_keys(database) as db:
            owner = {"project_id": _project(db), "user_id": _user(db)}
            idle_consumers = [{"uuid": str(uuid.UUID(int=1000 + number)), **owner} for number in range(21)]
            db.execute(sa.insert(consumers), idle_consumers)
        assert "|   and 1 more: --json prints all " in doctor().out
        assert len(doctor("--json").document["findings"][0]["where"]) == 21

    @pytest.mark.parametrize("words", [["--yes"], ["--check", "nothing"], ["--nonsense"]])
    def test_invalid_arguments_exit_with_2(self, doctor, words):
        ran = doctor(*words)
        assert (ran.code, ran.out) == (2, "")

    def test_an_unreachable_database_exits_with_1(self, backend, tmp_path, in_process):
        path = tmp_path / "placement.conf"
        path.write_text("[placement_database]\nconnection = sqlite:////nowhere/at.all\nmax_retries = 0\n")
        ran = in_process(manage, "--config-file", str(path), "doctor")
        assert (ran.code, ran.out) == (1, "")
