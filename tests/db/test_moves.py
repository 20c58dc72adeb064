"""Concurrent moves of subtrees: descendants always have the root of their parent."""

import uuid

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.database import opened
from placement.db.tables import resource_providers
from placement.objects.locked_provider import LockedProvider


def move(database, name, parent):
    def work(db):
        return LockedProvider.lock_and_move(db, name, parent, freely=True)

    return database.write(work)


def before_statement(number, engine, act):
    """Run ``act`` once, before the statement of this number, counted from now on."""
    sent = []

    @sa.event.listens_for(engine, "before_cursor_execute")
    def count(_connection, _cursor, statement, *_more):
        sent.append(statement)
        if len(sent) == number:
            assert not any("FOR UPDATE" in earlier for earlier in sent[:-1]), "it would wait for our own locks"
            act()


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("statement", [1, 2, 3, 4])
@pytest.mark.parametrize("moved", ["the provider", "the new parent"])
def test_a_move_finds_what_moved_meanwhile(database, statement, moved):
    """LP 1779635: a root read before another move, and descendants read after it, are inconsistent."""
    old, other, new, below_new, provider, child = (str(uuid.uuid4()) for _ in range(6))
    parents = {old: None, other: None, new: None, below_new: new, provider: old, child: provider}
    for name, parent in parents.items():
        database.write(lambda db, n=name, p=parent: LockedProvider.create(db, uuid=n, name=n, parent_uuid=p))
    with opened(database.url) as elsewhere:
        meanwhile = provider if moved == "the provider" else below_new
        before_statement(statement, database.engine, lambda: move(elsewhere, meanwhile, other))
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
def test_a_move_finds_what_was_deleted_meanwhile(database, gone, parent, statement, refused):
    """Between its read and its lock."""
    uuids = {name: str(uuid.uuid4()) for name in ("old", "parent", "provider")}
    for name, one in uuids.items():
        above = uuids["old"] if name == "provider" else None
        database.write(
            lambda db, one=one, above=above: LockedProvider.create(db, uuid=one, name=one, parent_uuid=above)
        )
    with opened(database.url) as elsewhere:

        def delete():
            elsewhere.write(lambda db: LockedProvider.lock(db, uuids[gone]).delete())

        before_statement(statement, database.engine, delete)
        with pytest.raises(refused):
            move(database, uuids["provider"], uuids[parent])
