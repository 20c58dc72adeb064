"""The feed is complete for the writes of every route: each commit records all its changes of indexed data.

The writes are scenarios of requests (tests/db/writes.py), at least one for each endpoint of the table of routes.  The
changes of a commit are found by comparing tables (tests/db/feed_audit.py), independently of the code under test.
"""

from __future__ import annotations

import re
from unittest import mock

import pytest

from placement import microversion as mv
from placement.db import feed
from placement.db.writes.transaction import Transaction
from placement.http.endpoint import Endpoint
from placement.index.refresh import load_index
from tests import apis
from tests.db import sql_hooks
from tests.db.feed_audit import audit
from tests.db.in_process import placement
from tests.db.scenarios import Names, Write
from tests.db.writes import ALL, HOST, REFUSED, SAME, VARIANTS, aggregates, claim, every_tenth, traits
from tests.index.reader import Reader

CHANGING = tuple(write for write in (*ALL, *VARIANTS) if write not in (*REFUSED, *SAME))
each_write = pytest.mark.parametrize("write", every_tenth(CHANGING))


def prepare(write, database):
    """Send the preconditions of the write; return a function that sends its request."""
    names, service = Names(), placement(database)
    for call in write.before:
        answer = service(*names.fill(call))
        assert answer.status < 300, (call, answer)
    call = names.fill(write.call)
    return lambda: service(*call)


@pytest.mark.parametrize("write", [*ALL, *VARIANTS], ids=lambda write: write.name)
def test_each_commit_records_its_changes(database, write):
    """An index that follows the feed equals a rebuilt one."""
    reader = Reader(database)
    with audit(database) as commits:
        request = prepare(write, database)
        reader.look(must_follow=True)
        before = len(commits)
        assert request().status == write.status
    assert not [commit.omissions for commit in commits if commit.omissions]
    assert any(commit.changes for commit in commits[before:]) == (write in CHANGING)
    reader.look(must_follow=True)


@each_write
def test_the_audit_sees_a_write_that_records_nothing(database, write):
    request = prepare(write, database)
    with audit(database) as commits, mock.patch.object(Transaction, "record_change", autospec=True):
        assert request().status == write.status
    assert any(commit.omissions for commit in commits) == bool(changed_of(commits))


@each_write
def test_the_audit_sees_a_record_that_is_too_weak(database, write):
    request, changed = prepare(write, database), Transaction.record_change
    with (
        audit(database) as commits,
        mock.patch.object(Transaction, "record_change", lambda self, id_, _: changed(self, id_, feed.USAGE)),
    ):
        assert request().status == write.status
    assert any(commit.omissions for commit in commits) == bool(changed_of(commits) - {feed.USAGE})


def changed_of(commits):
    return {change for commit in commits for change in commit.changes.values()}


# --- every route, and every table -------------------------------------------------------------------------------------


def writing_endpoints():
    """Yield method, path and endpoint of every endpoint of all APIs except those for GET."""
    for api in apis.WRITABLE:
        for path, methods in api.routes.items():
            for method, declared in methods.items():
                if method != "GET":
                    for endpoint in (declared,) if isinstance(declared, Endpoint) else declared:
                        yield method, api.prefix + path, endpoint


def endpoint_of(write: Write):
    """Return the endpoint that serves the write's request."""
    method, path = write.call.target.partition("?")[0].split()
    version = mv.Version(1, write.call.minor)
    for served, template, endpoint in writing_endpoints():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if served == method and re.fullmatch(pattern, path) and (endpoint.until is None or version < endpoint.until):
            return served, template, endpoint.since
    raise AssertionError(f"no route for {write.call.target}")


def test_every_endpoint_that_writes_has_a_scenario():
    covered = {endpoint_of(write) for write in (*CHANGING, *SAME)}
    assert covered == {(method, path, endpoint.since) for method, path, endpoint in writing_endpoints()}


def test_the_audit_compares_every_table_that_the_index_reads(database):
    """The feed itself, and tables that only show whether a lease is due, are exempt."""
    names, service = Names(), placement(database)
    for call in (
        *HOST,
        traits("host", 1, "HW_CPU_X86_AVX"),
        aggregates("host", 2, "$aggregate"),
        claim(host={"VCPU": 1}),
    ):
        assert service(*names.fill(call)).status < 300
    indexed, compared = [], []
    with sql_hooks.statements(database.reading_engine, indexed.append):
        database.snapshot(load_index)
    with sql_hooks.statements(database.engine, compared.append), audit(database):
        pass
    exempt = {"feed_instance", "change_writers", "provider_changes", "claims", "consumers"}
    assert tables(indexed) - exempt == tables(compared) - exempt


def tables(statements):
    return {name for statement in statements for name in re.findall(r"(?:FROM|JOIN) \"?(\w+)", statement)}
