"""Servers fork workers before or after loading the service: no two workers share a connection or a writer."""

from __future__ import annotations

import collections
import contextlib
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import provider_changes
from tests import running, servers, web_servers
from tests.conftest import chosen
from tests.load.soundness import flaws
from tests.load.storm import Call, Storm, claim, statuses
from tests.made import opened
from tests.patient import APPLICATION, OPTIONS

FLAGS = {
    "forked": (),
    "forked, threads": ("--enable-threads", "--threads", "3"),
    "lazy": ("--lazy-apps",),
    "lazy, threads": ("--lazy-apps", "--enable-threads", "--threads", "3"),
    "forked, thread support": ("--enable-threads",),
}


def ways(*short):
    """Return the flags of each way to fork; in a short run only those with these names."""
    return [
        pytest.param(flags, id=name, marks=[] if name in short else [pytest.mark.long]) for name, flags in FLAGS.items()
    ]


@pytest.fixture
def databases(request, subtests):
    """The URLs of new databases, one of each kind available: a single server with all of them starts quickly."""
    with contextlib.ExitStack() as stack:
        urls = []
        for kind in chosen(request.config):
            with subtests.test(kind):
                server = servers.shared(kind)
                urls.append(server.create_database())
                stack.callback(server.drop_database, urls[-1])
        yield urls


@pytest.mark.parametrize("flags", ways("forked, threads", "lazy"))
def test_workers_share_neither_connections_nor_writers(databases, flags):
    options = {"probe": {"databases": ",".join(databases)}, **OPTIONS}
    with running.uwsgi(databases[0], 2, options, module="tests.load.probe", flags=flags) as service:
        workers = [looked_at(service, place) for place, _ in enumerate(databases)]
    assert_nothing_was_shared(databases, workers)


def test_processes_of_mod_wsgi_share_neither_connections_nor_writers(databases):
    options = {"probe": {"databases": ",".join(databases)}, **OPTIONS}
    script = Path(__file__).with_name("probe.py")
    with web_servers.mod_wsgi(databases[0], options, script=script) as service:
        workers = [looked_at(service, place) for place, _ in enumerate(databases)]
    assert_nothing_was_shared(databases, workers)


def looked_at(service, place):
    """Return the workers that responded; each must have read and written over its own connections."""
    storm = Storm(f"{service.url}/{place}")
    looks = []

    def several():
        looks.extend(answer.body for answer in storm.together(*[Call("GET", "/probe")] * 36))
        return len({look["process"] for look in looks}) > 1

    # Lazy workers become ready one after another: the first may serve all requests for a while.
    service.wait_until(several)
    assert {look["process"] for look in looks} <= set(service.workers)
    assert all(look["writing"] and look["reading"] for look in looks)
    provider = storm.provider(VCPU=100)
    assert statuses(storm.together(*(claim([provider]) for _ in range(12)))) == {204: 12}
    assert storm.usage(provider) == 12
    return {look["process"] for look in looks}


def assert_nothing_was_shared(databases, workers):
    for database_url, workers_of_it in zip(databases, workers, strict=True):
        with opened(database_url) as database:
            assert flaws(database) == {}
            rows = database.read(lambda db: db.execute(sa.select(provider_changes)).all())
        processes = collections.defaultdict(set)
        for row in rows:
            if row.provider_id in workers_of_it:  # the probe returns its process id as the provider
                processes[row.writer_id].add(row.provider_id)
        assert processes
        assert all(len(of) == 1 for of in processes.values()), processes


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("flags", ways("lazy, threads"))
def test_a_database_in_memory_is_served_by_one_process_however_it_is_started(backend, flags):
    """Each process would have its own database, so there is only one process."""
    with running.uwsgi("sqlite://", 1, OPTIONS, module=APPLICATION, flags=flags) as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=8)
        assert statuses(storm.together(*(claim([provider]) for _ in range(12)))) == {204: 8, 409: 4}
        assert storm.usage(provider) == 8
