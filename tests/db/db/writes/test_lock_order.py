"""Every writer locks providers in the order of their ids, so that waiting transactions form no cycle."""

from __future__ import annotations

import contextlib
import itertools
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import signals
from placement.db.schema.tables import resource_providers
from tests import signal_facts
from tests.db import scenarios, sql_hooks, writes
from tests.db.db.writes.test_waiting import Meanwhile
from tests.db.in_process import placement
from tests.db.interleaving import wait_for_lock

#: Repetitions of each thread's function.
ROUNDS = 40

pytestmark = [
    pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True),
    pytest.mark.every_database,
    pytest.mark.usefixtures("patient_database"),
]


class Forest:
    """Trees in a database, and requests that change them."""

    def __init__(self, database):
        self.engine = database.engine
        self.ask = placement(database)

    def provider(self, parent=None):
        """Create a provider with inventory; return its uuid."""
        provider = str(uuid.uuid4())
        assert self.create_child(provider, parent) == 200
        stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 10**6}}}
        assert self.ask("PUT", f"/resource_providers/{provider}/inventories", 39, stock).status == 200
        return provider

    def create_child(self, provider, parent):
        body = {"uuid": provider, "name": provider, "parent_provider_uuid": parent}
        return self.ask("POST", "/resource_providers", 39, body).status

    def put(self, provider, parent, name=None):
        body = {"name": name or provider, "parent_provider_uuid": parent}
        return self.ask("PUT", f"/resource_providers/{provider}", 39, body).status

    def claim(self, *providers, dry_run="false", owner="p"):
        body = {
            "allocations": {provider: {"resources": {"VCPU": 1}} for provider in providers},
            "project_id": owner,
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return self.ask("PUT", f"/allocations/{uuid.uuid4()}?dry_run={dry_run}", 39, body).status

    @contextlib.contextmanager
    def lock(self, provider):
        """Lock the row of the provider in another transaction during the block."""
        with self.engine.connect() as connection:
            connection.execute(_LOCK, {"uuid": provider})
            yield
            connection.rollback()

    def is_free(self, provider):
        """Whether no transaction has locked the provider."""
        with self.engine.connect() as connection:
            try:
                return bool(connection.execute(_LOCK_AT_ONCE, {"uuid": provider}).all())
            except sa.exc.OperationalError:
                return False
            finally:
                connection.rollback()


_LOCK = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == sa.bindparam("uuid")).with_for_update()
_LOCK_AT_ONCE = _LOCK.with_for_update(nowait=True)


@pytest.fixture
def forest(database):
    return Forest(database)


@pytest.fixture
def error_labels():
    """Record the labels of driver errors."""
    with signal_facts.collect(signals.driver_error) as labels:
        yield labels


def repeat(*works):
    """Run each function repeatedly in its own thread; return all results."""
    with ThreadPoolExecutor(len(works)) as threads:
        results_by_work = threads.map(lambda work: [work() for _ in range(ROUNDS)], works)
        return [result for results in results_by_work for result in results]


def new():
    return str(uuid.uuid4())


def test_new_children_and_claims_do_not_deadlock(forest, error_labels):
    """Otherwise INSERT locks the parent while its foreign key waits for the root, and most children are refused."""
    root = forest.provider()
    parent = forest.provider(root)
    creations = [lambda: forest.create_child(new(), parent)]
    results = repeat(*creations, *[lambda: forest.claim(root, parent)] * 4)
    assert set(results) == {200, 204}
    assert "deadlock" not in error_labels


def test_dry_runs_and_claims_do_not_deadlock(forest, error_labels):
    """Two claims and two dry runs create each new owner concurrently."""
    provider, another = forest.provider(), forest.provider()
    owners = [itertools.count() for _ in range(4)]

    def claims(number, *providers, **more):
        return lambda: forest.claim(*providers, owner=str(next(owners[number])), **more)

    results = repeat(
        *(claims(0, provider, another), claims(1, another, provider)),
        *(claims(2, provider, another, dry_run="true"), claims(3, another, provider, dry_run="true")),
    )
    assert set(results) == {200, 204}
    assert "deadlock" not in error_labels


@pytest.mark.parametrize("change_kind", ["moved", "renamed"])
def test_an_update_that_names_a_parent_is_not_starved_by_new_children(forest, change_kind):
    """Otherwise most updates are refused, because the tree always has one child more than was read."""
    old_parent, new_parent = forest.provider(), forest.provider()
    child = forest.provider(old_parent)
    parents = itertools.cycle([new_parent, old_parent])
    names = itertools.cycle([f"new {child}", child])

    def change():
        return (
            forest.put(child, next(parents)) if change_kind == "moved" else forest.put(child, old_parent, next(names))
        )

    results = repeat(
        change, *[lambda: forest.create_child(new(), old_parent)] * 2, *[lambda: forest.create_child(new(), child)] * 2
    )
    assert set(results) == {200}


@pytest.mark.parametrize("root_is", ["older", "younger"])
@pytest.mark.parametrize("act", ["create_child", "move"])
def test_a_transaction_that_waits_for_a_provider_has_locked_no_provider_of_a_higher_id(forest, database, act, root_is):
    """Otherwise it deadlocks with a transaction that takes the locks in the order of ids."""
    if root_is == "older":
        root = forest.provider()
        parent = forest.provider(root)
    else:
        parent, root = forest.provider(), forest.provider()
        assert forest.put(parent, root) == 200
    first, second = (root, parent) if root_is == "older" else (parent, root)
    moving = forest.provider()

    def work():
        return forest.create_child(new(), parent) if act == "create_child" else forest.put(moving, parent)

    with forest.lock(first):
        meanwhile = Meanwhile(work)
        wait_for_lock(database)
        assert forest.is_free(second)
        assert forest.is_free(moving)
    assert meanwhile.wait()
    assert meanwhile.result == 200
    with forest.lock(second):
        meanwhile = Meanwhile(forest.create_child, new(), parent)
        wait_for_lock(database)
        assert not forest.is_free(first), "the root of a tree that changes is locked"
    assert meanwhile.wait()


WRITES_OF_SEVERAL_PROVIDERS = [
    write for write in writes.ALL if write.name in ("move a subtree", "claim for the first time", "reshape")
]


@pytest.mark.parametrize("write", WRITES_OF_SEVERAL_PROVIDERS, ids=lambda write: write.name)
def test_several_rows_are_locked_in_the_order_of_their_ids(database, write):
    """This holds for any query plan: for the roots and parents of a move, and the providers of a claim."""
    names, service, seen = scenarios.Names(), placement(database), []
    for call in write.before:
        assert service(*names.fill(call)).status < 300
    with sql_hooks.statements(database.engine, seen.append):
        assert service(*names.fill(write.call)).status == write.status
    locks = [statement for statement in seen if re.search(r"\bIN \(.* FOR (NO KEY )?UPDATE", statement)]
    assert locks
    assert all("ORDER BY resource_providers.id" in statement for statement in locks)
