"""An older backup is restored under running workers, by the commands of docs/backup.rst: each worker notices it.

Each service of these tests has one process, so that the worker of a request is known.  No index is compared with the
database: the workers notice the restore through the change feed alone.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import secrets
import shutil
import threading
import time

import pytest
import sqlalchemy as sa

from placement.cmd import manage
from placement.db.schema.tables import resource_classes, resource_providers, traits
from tests import backups, children, galera, running, servers
from tests.db.in_process import placement
from tests.load.storm import NONE, Storm, claim, name, new, stock
from tests.made import opened
from tests.run_length import LONG

pytestmark = pytest.mark.xdist_group("restores")
OPTIONS = {"placement": {"index_verify_interval": 0}}
#: Standard names that these tests do not otherwise use.
MISSING_CLASS, MISSING_TRAIT = "FPGA", "HW_CPU_X86_AVX2"
WORKERS = 3
FLAGS = ("--lazy-apps", "--enable-threads", "--threads", "4")
IN_PLACE = "In place, with the service stopped"
#: The line with which mariadb-dump begins a table.
TABLE = "--\n-- Table structure for table `"


@pytest.fixture(scope="module")
def placement_url(backend):
    """The URL of an empty database, which is called "placement" on a server."""
    if backend.kind == "sqlite":
        url = backend.create_database()
        yield url
        backend.drop_database(url)
        return
    with servers.private(backend.kind) as server:
        server._administer("CREATE DATABASE placement")
        yield server.url.set(database="placement").render_as_string(hide_password=False)


@contextlib.contextmanager
def serving(database, other=None):
    """Yield the URLs of services with one worker each: two under uWSGI, and placement-serve, on ``other`` if given."""
    with contextlib.ExitStack() as stack:
        uwsgi = [stack.enter_context(running.uwsgi(database, 1, OPTIONS, flags=FLAGS)) for _ in range(WORKERS - 1)]
        embedded = stack.enter_context(running.embedded(other or database, OPTIONS))
        yield [service.url for service in (*uwsgi, embedded)]


@pytest.fixture(scope="module")
def urls(placement_url):
    with serving(placement_url) as served_urls:
        yield served_urls


@pytest.fixture
def workers(urls):
    """A client of each worker."""
    return [Storm(url) for url in urls]


@pytest.fixture
def operator(placement_url):
    return backups.Operator(placement_url)


@pytest.fixture
def database(placement_url):
    with opened(placement_url) as opened_database:
        yield opened_database


class Scenario:
    """The changes before and after a backup; each worker makes each kind of change once.

    Attributes:
        reuses_ids: Whether the database reuses ids of lost rows.
    """

    reuses_ids = True

    def __init__(self, workers, database):
        self.workers, self.database = workers, database
        self.steady = workers[0].provider(VCPU=1000)
        self.changed = [worker.provider(VCPU=8) for worker in workers]
        self.doomed = [worker.provider(VCPU=8) for worker in workers]
        self.early = [new() for _ in workers]
        self.kept_class, self.kept_trait = name("KEPT"), name("KEPT")
        workers[0].ask("PUT", f"/resource_classes/{self.kept_class}")
        workers[0].ask("PUT", f"/traits/{self.kept_trait}")
        for worker, consumer, provider in zip(workers, self.early, self.changed, strict=True):
            assert worker.ask(*claim({provider: {"VCPU": 1}}, consumer=consumer)).status == 204
        self.before = self.responses_of(workers[0])

    def change_after_backup(self):
        """Change everything after the backup, each worker a part, and wait until all indices contain the changes."""
        self.late, self.late_consumers, self.lost_generations = [], [], []
        self.late_class, self.late_trait = name("LATE"), name("LATE")
        self.workers[0].ask("PUT", f"/resource_classes/{self.late_class}")
        self.workers[0].ask("PUT", f"/traits/{self.late_trait}")
        for number, worker in enumerate(self.workers):
            self.late.append(worker.provider(**{"VCPU": 77, self.late_class: 5}))
            consumer = new()
            assert worker.ask(*claim({self.changed[number]: {"VCPU": 2}}, consumer=consumer)).status == 204
            self.late_consumers.append(consumer)
            assert worker.ask("DELETE", f"/allocations/{self.early[number]}").status == 204
            assert worker.ask("DELETE", f"/resource_providers/{self.doomed[number]}").status == 204
            generation = worker.generation(self.changed[number])
            assert worker.ask(*stock(self.changed[number], generation, VCPU=16)).status == 200
            self.lost_generations.append(generation + 1)
        assert self.workers[0].ask("DELETE", f"/resource_classes/{self.kept_class}").status == 204
        assert self.workers[0].ask("DELETE", f"/traits/{self.kept_trait}").status == 204
        for worker in self.workers:
            document = worker.get(f"/allocation_candidates?resources={self.late_class}:1")
            assert {*document["provider_summaries"]} == {*self.late}
        self.late_ids = {self._id(provider) for provider in self.late}

    def _id(self, provider):
        query = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == provider)
        return self.database.read(lambda db: db.execute(query).scalar_one())

    def check(self, worker, number):
        """Check that the worker serves the restored data and continues from there; a search comes first."""
        summaries = worker.get("/allocation_candidates?resources=VCPU:1")["provider_summaries"]
        assert {*self.doomed, self.changed[number], self.steady} <= {*summaries}
        assert not {*self.late} & {*summaries}
        assert worker.ask("GET", f"/allocation_candidates?resources={self.late_class}:1").status == 400
        for provider in self.late:
            assert worker.ask("GET", f"/resource_providers/{provider}").status == 404
        assert worker.ask("GET", f"/resource_classes/{self.late_class}").status == 404
        assert worker.ask("GET", f"/traits/{self.late_trait}").status == 404
        assert worker.ask("GET", f"/resource_classes/{self.kept_class}").status == 200
        assert worker.ask("GET", f"/traits/{self.kept_trait}").status == 204
        assert worker.allocations(self.late_consumers[number]) == {}
        assert worker.allocations(self.early[number]) == {self.changed[number]: {"VCPU": 1}}
        assert (
            worker.get(f"/resource_providers/{self.changed[number]}/inventories")["inventories"]["VCPU"]["total"] == 8
        )
        assert worker.usage(self.changed[number]) == 1
        # The lost generation is refused; the generation of the backup is accepted.
        assert worker.ask(*stock(self.changed[number], self.lost_generations[number], VCPU=9)).status == 409
        generation = worker.generation(self.changed[number])
        assert generation < self.lost_generations[number]
        assert worker.ask(*stock(self.changed[number], generation, VCPU=10)).status == 200
        assert worker.ask(*claim({self.changed[number]: {"VCPU": 2}}, consumer=self.early[number])).status == 409
        assert worker.ask(*claim({self.changed[number]: {"VCPU": 9}})).status == 204
        assert worker.ask(*claim({self.changed[number]: {"VCPU": 1}})).status == 409

    def reuse_ids(self):
        """Create providers, a class and a trait with ids of lost ones; check that each worker serves the new ones."""
        again_class, again_trait = name("AGAIN"), name("AGAIN")
        assert self.workers[0].ask("PUT", f"/resource_classes/{again_class}").status == 201
        assert self.workers[0].ask("PUT", f"/traits/{again_trait}").status == 201
        providers = []
        for worker in self.workers:
            provider = worker.provider(**{again_class: 3})
            body = {"resource_provider_generation": 1, "traits": [again_trait]}
            assert worker.ask("PUT", f"/resource_providers/{provider}/traits", body).status == 200
            providers.append(provider)
        if self.reuses_ids:
            assert {self._id(provider) for provider in providers} == self.late_ids
        for worker in self.workers:
            document = worker.get(f"/allocation_candidates?resources={again_class}:1&required={again_trait}")
            assert {*document["provider_summaries"]} == {*providers}
            document = worker.get("/allocation_candidates?resources=VCPU:1")["provider_summaries"]
            assert not {*providers} & {*document}

    def responses_of(self, worker):
        """Return the responses of a worker to reads of everything."""
        paths = [
            "/allocation_candidates?resources=VCPU:1",  # first, since a search notices the restore
            "/allocation_candidates?resources=VCPU:9",
            "/resource_providers?resources=VCPU:1",
            "/resource_providers",
            "/resource_classes",
            "/traits",
            "/usages?project_id=p",
            "/v1/overview",
            "/v1/consumers",
            *(f"/allocations/{consumer}" for consumer in self.early),
            *(f"/resource_providers/{provider}/usages" for provider in (*self.changed, self.steady)),
        ]
        return {path: sorted_through(worker.get(path)) for path in paths}

    def check_all_agree(self):
        """Check that each worker responds like a newly started service."""
        new_service = placement(self.database)
        for worker in self.workers:
            responses = self.responses_of(worker)
            for path, body in responses.items():
                assert body == sorted_through(new_service("GET", path).body), path


def sorted_through(body):
    """Return the body with its arrays sorted."""
    if isinstance(body, dict):
        return {key: sorted_through(value) for key, value in body.items()}
    if isinstance(body, list):
        return sorted((sorted_through(value) for value in body), key=lambda value: json.dumps(value, sort_keys=True))
    return body


class Busy:
    """Concurrent claims and searches at each worker, which a restore must not make fail except by a conflict."""

    #: Possible statuses of a request: success, conflict, an unknown provider or consumer, and unavailable.
    ALLOWED = (200, 201, 204, 404, 409, 503)

    def __init__(self, urls, steady):
        self.steady, self.stop = steady, threading.Event()
        self.workers = [Storm(url) for url in urls]
        self.done = {id(worker): 0 for worker in self.workers}
        loops = (self.claims, self.searches)
        self.threads = [threading.Thread(target=work, args=[worker]) for worker in self.workers for work in loops]

    def claims(self, worker):
        while not self.stop.is_set():
            consumer = new()
            worker.ask(*claim({self.steady: {"VCPU": 1}}, consumer=consumer))
            worker.ask("DELETE", f"/allocations/{consumer}")
            self.done[id(worker)] += 1

    def searches(self, worker):
        while not self.stop.is_set():
            worker.ask("GET", "/allocation_candidates?resources=VCPU:1")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.wait(3)
        return self

    def wait(self, number):
        """Wait until each worker has made this number of further claims."""
        goals = {key: done + number for key, done in self.done.items()}
        while any(self.done[key] < goal for key, goal in goals.items()):
            assert all(thread.is_alive() for thread in self.threads)
            self.stop.wait(0.01)

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        """Check that each request had an allowed status, and that no search read an incomplete database."""
        events = [event for worker in self.workers for event in worker.history]
        unexpected = [event for event in events if event.answer.status not in self.ALLOWED or event.answer == NONE]
        assert unexpected == []
        searches = [event.answer for event in events if event.call.path.startswith("/allocation_candidates")]
        assert [answer for answer in searches if answer.status not in (200, 503)] == []
        incomplete = [answer for answer in searches if answer.status == 200 and not self._shows(answer)]
        assert incomplete == []

    def _shows(self, answer):
        return self.steady in answer.body["provider_summaries"]


def restore(operator, kind):
    """Restore the backup; on a server, drop the replaced state."""
    operator.restore()
    if kind != "sqlite":
        operator.run("The replaced state")


def check(scenario, first=0):
    """Check that each worker, beginning with ``first``, serves the restored data, and that all continue from there."""
    numbers = [*range(first, WORKERS), *range(first)]
    for number in numbers:
        assert scenario.responses_of(scenario.workers[number]) == scenario.before
    for number in numbers:
        scenario.check(scenario.workers[number], number)
    scenario.reuse_ids()
    scenario.check_all_agree()


@pytest.mark.parametrize("first", range(WORKERS if LONG else 1))
def test_each_worker_notices_a_restore_without_concurrent_requests(workers, database, operator, backend, first):
    scenario = Scenario(workers, database)
    operator.back_up()
    scenario.change_after_backup()
    restore(operator, backend.kind)
    check(scenario, first)


def test_each_worker_notices_a_restore_during_writes_of_all(workers, urls, database, operator, backend):
    scenario = Scenario(workers, database)
    with Busy(urls, scenario.steady) as busy:
        operator.back_up()
        scenario.change_after_backup()
        busy.wait(3)
        restore(operator, backend.kind)
        busy.wait(3)
        for number, worker in enumerate(workers):
            scenario.check(worker, number)
    busy.check()
    scenario.reuse_ids()
    scenario.check_all_agree()


@pytest.mark.long
def test_each_worker_notices_a_newer_backup_restored_after_an_older_one(workers, database, operator, backend):
    older, newer = operator, backups.Operator(database.url.render_as_string(hide_password=False))
    older.back_up()
    scenario = Scenario(workers, database)
    newer.back_up()
    scenario.change_after_backup()
    restore(older, backend.kind)
    for worker in workers:
        assert worker.ask("GET", f"/resource_providers/{scenario.steady}").status == 404
        summaries = worker.get("/allocation_candidates?resources=VCPU:1")["provider_summaries"]
        assert not {scenario.steady, *scenario.late} & {*summaries}
    workers[0].provider(VCPU=1)
    restore(newer, backend.kind)
    check(scenario)


@pytest.mark.long
def test_each_worker_notices_a_restore_after_further_writes_of_another(workers, database, operator, backend):
    """The other worker continues the sequence numbers, beyond the last ones that the remaining workers have read."""
    steady = workers[0].provider(VCPU=8)
    operator.back_up()
    lost_providers = {workers[0].provider(VCPU=8) for _ in range(3)}
    for worker in workers:
        assert lost_providers <= {*worker.get("/allocation_candidates?resources=VCPU:1")["provider_summaries"]}
    restore(operator, backend.kind)
    new_provider = workers[0].provider(VCPU=8)
    for worker in reversed(workers):
        summaries = worker.get("/allocation_candidates?resources=VCPU:1")["provider_summaries"]
        assert {*summaries} & {steady, new_provider, *lost_providers} == {steady, new_provider}


@pytest.mark.parametrize("first", range(WORKERS if LONG else 1))
def test_standard_names_missing_from_a_backup_are_restored(workers, database, operator, backend, first):
    provider = workers[0].provider()
    with database.engine.begin() as connection:  # as in a backup of a version without them
        connection.execute(sa.delete(resource_classes).where(resource_classes.c.name == MISSING_CLASS))
        connection.execute(sa.delete(traits).where(traits.c.name == MISSING_TRAIT))
    operator.back_up()
    for worker in workers:
        response = worker.get(f"/allocation_candidates?resources={MISSING_CLASS}:1&required={MISSING_TRAIT}")
        assert response["provider_summaries"] == {}
    late_provider = workers[0].provider(**{MISSING_CLASS: 1})
    for worker in workers:
        assert {*worker.get(f"/allocation_candidates?resources={MISSING_CLASS}:1")["provider_summaries"]} == {
            late_provider
        }
    restore(operator, backend.kind)
    names = sa.select(resource_classes.c.name).where(resource_classes.c.name == MISSING_CLASS)
    assert database.read(lambda db: db.execute(names).all()) == []
    for worker in (*workers[first:], *workers[:first]):
        assert worker.get(f"/allocation_candidates?resources={MISSING_CLASS}:1")["provider_summaries"] == {}
        assert worker.ask("GET", f"/traits/{MISSING_TRAIT}").status == 204
    assert database.read(lambda db: db.execute(names).all()) != []
    assert workers[first].ask(*stock(provider, 0, **{MISSING_CLASS: 1})).status == 200
    body = {"resource_provider_generation": 1, "traits": [MISSING_TRAIT]}
    assert workers[first].ask("PUT", f"/resource_providers/{provider}/traits", body).status == 200
    for worker in workers:
        response = worker.get(f"/allocation_candidates?resources={MISSING_CLASS}:1&required={MISSING_TRAIT}")
        assert {*response["provider_summaries"]} == {provider}
    assert workers[0].ask("DELETE", f"/resource_providers/{provider}").status == 204


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True, scope="session")
def test_each_worker_notices_a_restore_in_place_without_client_requests(workers, database, operator):
    scenario = Scenario(workers, database)
    operator.back_up()
    scenario.change_after_backup()
    operator.run(IN_PLACE)
    check(scenario)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["mariadb"], indirect=True, scope="session")
def test_data_read_during_a_restore_in_place_is_read_again_after_db_restored(
    workers, database, operator, in_process, monkeypatch
):
    """The data is not read again before, as the page says: the feed was already complete, and gets no newer rows."""
    scenario = Scenario(workers, database)
    operator.back_up()
    scenario.change_after_backup()
    dump = (operator.directory / "placement.sql").read_text()
    head, begin = dump.index(TABLE), dump.index(f"{TABLE}resource_classes`")
    for part, text in (("first", dump[:begin]), ("last", dump[:head] + dump[begin:])):
        (operator.directory / f"{part}.sql").write_text(text)
    operator.run(IN_PLACE, {"placement.sql": "first.sql"})
    for worker in workers:
        worker.get("/allocation_candidates?resources=VCPU:1")
    operator.run(IN_PLACE, {"placement.sql": "last.sql"})
    assert [scenario.responses_of(worker) == scenario.before for worker in workers] == [False] * WORKERS
    url = database.url.render_as_string(hide_password=False)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    assert in_process(manage, "db", "restored").code == 0
    check(scenario)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["mariadb"], indirect=True, scope="session")
def test_workers_at_each_node_of_galera_notice_a_restore_at_one_node(backend):
    with galera.cluster() as cluster:
        nodes = cluster.nodes
        nodes[0]._administer("CREATE DATABASE placement")
        first, second = (node.url.set(database="placement").render_as_string(hide_password=False) for node in nodes)
        with serving(first, second) as urls, opened(second) as database:
            operator, workers = backups.Operator(first), [Storm(url) for url in urls]
            scenario = Scenario(workers, database)
            scenario.reuses_ids = False  # each node has its own ids
            with Busy(urls, scenario.steady) as busy:
                operator.back_up()
                scenario.change_after_backup()
                busy.wait(3)
                restore(operator, backend.kind)
                busy.wait(3)
                for number, worker in enumerate(workers):
                    scenario.check(worker, number)
            busy.check()
            scenario.reuse_ids()
            scenario.check_all_agree()


# --- to a point in time ---


class MariaDBWithLog(servers.MariaDB):
    """A server with a binary log."""

    def _command(self):
        return [*super()._command(), "--server-id=1", "--log-bin=binlog", "--max-binlog-size=64K"]


def whole_second(server):
    """Wait for a whole second of the server's clock, and return it: a time after all changes so far."""
    [[now]] = server._administer("SELECT now()")
    then = now.replace(microsecond=0) + datetime.timedelta(seconds=2)
    while server._administer("SELECT now()")[0][0] < then:
        time.sleep(0.05)
    return str(then)


@contextlib.contextmanager
def serving_placement(server):
    """Yield a database "placement" of a server: its workers, the database and its operator."""
    server._administer("CREATE DATABASE placement")
    url = server.url.set(database="placement").render_as_string(hide_password=False)
    with serving(url) as urls, opened(url) as database:
        yield [Storm(url) for url in urls], database, backups.Operator(url)


@pytest.fixture
def logging_server(backend):
    """A private MariaDB with a binary log."""
    server = MariaDBWithLog(children.run_directory() / f"mariadb-{secrets.token_hex(4)}")
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.directory, ignore_errors=True)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["mariadb"], indirect=True, scope="session")
def test_each_worker_notices_a_recovery_from_the_binary_log(logging_server):
    with serving_placement(logging_server) as (workers, database, operator):
        position = operator.run("MariaDB: backup with the position in the log")
        first, start = re.search(r"MASTER_LOG_FILE='(.+?)', MASTER_LOG_POS=(\d+)", position).groups()
        scenario = Scenario(workers, database)
        stop = whole_second(logging_server)
        scenario.change_after_backup()
        logs = [str(log) for log in sorted((logging_server.directory / "data").glob("binlog.0*")) if log.name >= first]
        assert len(logs) > 1
        operator.run("Load the backup beside the database")
        words = {"POSITION": start, "STOP": stop, "LOGS": " ".join(logs)}
        operator.run("MariaDB: recovery", words)
        operator.run("Replace the database")
        check(scenario)


@pytest.mark.long
@pytest.mark.parametrize("private_server", ["postgresql"], indirect=True)
def test_each_worker_notices_a_recovery_from_the_write_ahead_log(private_server):
    with serving_placement(private_server) as (workers, database, operator):
        data = private_server.directory / "data"

        def configure(section, stop=""):
            lines = backups.blocks(section)[next(iter(backups.blocks(section)))]
            with (data / "postgresql.conf").open("a") as file:
                file.write(lines.replace("/backup", str(operator.directory)).replace("STOP", stop))

        (operator.directory / "wal").mkdir()
        change_owner(private_server, operator.directory)
        private_server.stop()
        configure("PostgreSQL: backup of the server")
        private_server.start()
        operator.run("PostgreSQL: backup of the server")
        scenario = Scenario(workers, database)
        scenario.reuses_ids = False  # its log reserves the next 32 of a sequence
        stop = whole_second(private_server)
        scenario.change_after_backup()
        private_server.stop()
        assert workers[0].ask("GET", "/resource_providers").status == 503
        shutil.rmtree(data)
        shutil.copytree(operator.directory / "base", data)
        (data / "recovery.signal").touch()
        configure("PostgreSQL: recovery", stop)
        change_owner(private_server, data)
        private_server.start()
        while private_server._administer("SELECT pg_is_in_recovery()") != [(False,)]:
            time.sleep(0.05)
        check(scenario)


def change_owner(server, directory):
    """Make the user of the server the owner of a directory."""
    if server._identity:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, server._identity["user"], server._identity["group"])
