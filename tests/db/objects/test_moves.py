"""Concurrent moves of subtrees: descendants always have the root of their parent."""

import contextlib
import itertools
import uuid

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.schema.tables import resource_providers
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests.db.interleaving import locking
from tests.made import opened

pytestmark = pytest.mark.every_database


def move(database, name, parent):
    def work(db):
        return LockedProvider.lock_and_move(db, name, parent, may_reparent=True)

    return database.write(work)


@contextlib.contextmanager
def before_statement(number, engine, act):
    """Run ``act`` once, before the statement of this number, counted from the beginning of the block."""
    sent, acted = [], []

    def count(_connection, _cursor, statement, *_more):
        sent.append(statement)
        if len(sent) == number:
            assert not any(map(locking, sent[:-1])), "the other transaction would wait for the locks of this one"
            act()
            acted.append(statement)

    sa.event.listen(engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        sa.event.remove(engine, "before_cursor_execute", count)
    assert acted


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("statement", [1, 2, 3, 4])
@pytest.mark.parametrize("moved", ["the provider", "the new parent"])
def test_a_move_notices_a_concurrent_move(database, statement, moved):
    """LP 1779635: a root read before another move, and descendants read after it, are inconsistent."""
    old, other, new, below_new, provider, child = (str(uuid.uuid4()) for _ in range(6))
    parents = {old: None, other: None, new: None, below_new: new, provider: old, child: provider}
    for name, parent in parents.items():
        database.write(lambda db, n=name, p=parent: LockedProvider.create(db, uuid=n, name=n, parent_uuid=p))
    with opened(database.url) as elsewhere:
        meanwhile = provider if moved == "the provider" else below_new
        with before_statement(statement, database.engine, lambda: move(elsewhere, meanwhile, other)):
            move(database, provider, below_new)

    rows = database.read(lambda db: db.execute(sa.select(resource_providers)).all())
    by_id = {row.id: row for row in rows}
    assert {by_id[row.parent_provider_id].uuid for row in rows if row.uuid == provider} == {below_new}
    for row in rows:
        root = row.id if row.parent_provider_id is None else by_id[row.parent_provider_id].root_provider_id
        assert row.root_provider_id == root, f"{row.uuid} has another root than its parent"


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("gone", "parent", "statement", "refused"),
    [
        ("provider", "parent", 3, errors.ProviderNotFound),
        ("provider", "old", 2, errors.ProviderNotFound),
        ("parent", "parent", 3, errors.ProviderNotSaved),
    ],
    ids=["moved", "not moved", "parent"],
)
def test_a_move_notices_a_concurrent_deletion(database, gone, parent, statement, refused):
    """The deletion is committed between the read and the lock."""
    uuids = {name: str(uuid.uuid4()) for name in ("old", "parent", "provider")}
    for name, provider_uuid in uuids.items():
        above = uuids["old"] if name == "provider" else None
        database.write(
            lambda db, provider_uuid=provider_uuid, above=above: LockedProvider.create(
                db, uuid=provider_uuid, name=provider_uuid, parent_uuid=above
            )
        )
    with opened(database.url) as elsewhere:

        def delete():
            elsewhere.write(lambda db: LockedProvider.lock(db, uuids[gone]).delete())

        with before_statement(statement, database.engine, delete), pytest.raises(refused):
            move(database, uuids["provider"], uuids[parent])


def create(database, name, parent=None):
    """Create a provider and return its uuid."""
    provider = str(uuid.uuid4())
    database.write(lambda db: LockedProvider.create(db, uuid=provider, name=name, parent_uuid=parent))
    return provider


def id_of(database, provider):
    return database.read(lambda db: ResourceProvider.get(db, provider)).id


@contextlib.contextmanager
def locks(engine, before_first):
    """Run ``before_first`` before the first lock, and yield the ids that the last attempt locked, in order.

    A statement locks its ids in ascending order (test_lock_order).
    """
    locked, begun = [], []

    def lock(_connection, statement, _many, parameters, _options):
        if "FOR UPDATE" in str(statement):
            if not begun:
                begun.append(True)
                before_first()
            locked.extend(sorted(parameters["ids"]))

    def rollback(_connection):
        locked.clear()

    events = {"before_execute": lock, "rollback": rollback}
    for event, act in events.items():
        sa.event.listen(engine, event, act)
    try:
        yield locked
    finally:
        for event, act in events.items():
            sa.event.remove(engine, event, act)


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize(("late", "attempts"), [("a lower id", 2), ("a higher id", 1)])
def test_a_move_locks_late_members_of_the_subtree_in_the_order_of_the_ids(database, late, attempts):
    """Members may be added between the first read of the subtree and the locks; a lock out of order can deadlock."""
    early, old, new = (create(database, name) for name in ("early", "old", "new"))
    provider = create(database, "provider", old)
    begun, arrived = [], []

    def arrive():
        if late == "a lower id":
            move(elsewhere, early, provider)
            arrived.append(early)
        else:
            arrived.append(create(elsewhere, "late", provider))

    def work(db):
        begun.append(db.attempt)
        LockedProvider.lock_and_move(db, provider, new, may_reparent=True)

    with opened(database.url) as elsewhere, locks(database.engine, arrive) as locked:
        database.write(work)
    assert id_of(database, arrived[0]) in locked
    assert all(earlier < later for earlier, later in itertools.pairwise(locked))
    assert len(begun) == attempts
    assert {database.read(lambda db: ResourceProvider.get(db, arrived[0])).root_uuid} == {new}


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_child_is_created_under_the_lock_of_its_root(database):
    """This holds even if the parent moves to another tree between its read and its lock."""
    old, new = create(database, "old"), create(database, "new")
    parent = create(database, "parent", old)
    with (
        opened(database.url) as elsewhere,
        locks(database.engine, lambda: move(elsewhere, parent, new)) as locked,
    ):
        child = create(database, "child", parent)
    assert database.read(lambda db: ResourceProvider.get(db, child)).root_uuid == new
    assert set(locked) == {id_of(database, parent), id_of(database, new)}


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_child_of_a_parent_that_was_deleted_meanwhile_is_refused(database):
    parent = create(database, "parent")

    def delete(db):
        LockedProvider.lock(db, parent).delete()

    with (
        opened(database.url) as elsewhere,
        locks(database.engine, lambda: elsewhere.write(delete)),
        pytest.raises(errors.ProviderNotCreated, match="parent provider UUID does not exist"),
    ):
        create(database, "child", parent)
