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


def fork_flags(*short):
    """Return the flags of each way to fork; only those with these names are in the short run."""
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


@pytest.mark.parametrize("flags", fork_flags("forked, threads", "lazy"))
def test_workers_share_neither_connections_nor_writers(databases, flags):
    options = {"probe": {"databases": ",".join(databases)}, **OPTIONS}
    with running.uwsgi(databases[0], 2, options, module="tests.load.probe", flags=flags) as service:
        workers = [probe_workers(service, place) for place, _ in enumerate(databases)]
    assert_nothing_was_shared(databases, workers)


def test_processes_of_mod_wsgi_share_neither_connections_nor_writers(databases):
    options = {"probe": {"databases": ",".join(databases)}, **OPTIONS}
    script = Path(__file__).with_name("probe.py")
    with web_servers.mod_wsgi(databases[0], options, script=script) as service:
        workers = [probe_workers(service, place) for place, _ in enumerate(databases)]
    assert_nothing_was_shared(databases, workers)


def probe_workers(service, place):
    """Return the workers that responded; each must have read and written over its own connections."""
    storm = Storm(f"{service.url}/{place}")
    reports = []

    def has_several_workers():
        reports.extend(answer.body for answer in storm.together(*[Call("GET", "/probe")] * 36))
        return len({report["process"] for report in reports}) > 1

    # Lazy workers become ready one after another: the first may serve all requests for a while.
    service.wait_until(has_several_workers)
    assert {report["process"] for report in reports} <= set(service.workers)
    assert all(report["writing"] and report["reading"] for report in reports)
    provider = storm.provider(VCPU=100)
    assert statuses(storm.together(*(claim([provider]) for _ in range(12)))) == {204: 12}
    assert storm.usage(provider) == 12
    return {report["process"] for report in reports}


def assert_nothing_was_shared(databases, workers):
    for database_url, its_workers in zip(databases, workers, strict=True):
        with opened(database_url) as database:
            assert flaws(database) == {}
            rows = database.read(lambda db: db.execute(sa.select(provider_changes)).all())
        processes_by_writer = collections.defaultdict(set)
        for row in rows:
            if row.provider_id in its_workers:  # the probe returns its process id as the provider
                processes_by_writer[row.writer_id].add(row.provider_id)
        assert processes_by_writer
        assert all(len(writer_processes) == 1 for writer_processes in processes_by_writer.values()), processes_by_writer


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("flags", fork_flags("lazy, threads"))
def test_a_database_in_memory_serves_claims_however_the_process_is_started(backend, flags):
    """There is one process, because each would have its own database."""
    with running.uwsgi("sqlite://", 1, OPTIONS, module=APPLICATION, flags=flags) as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=8)
        assert statuses(storm.together(*(claim([provider]) for _ in range(12)))) == {204: 8, 409: 4}
        assert storm.usage(provider) == 8
