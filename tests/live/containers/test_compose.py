"""compose.yaml, as docs/containers.rst starts it: two services behind haproxy, on MariaDB."""

from __future__ import annotations

import base64
import contextlib
import functools
import re
import sys
import threading
from pathlib import Path

import pytest

from tests import children
from tests.containers import IMAGE
from tests.docs.run_by import blocks_of
from tests.load.storm import NONE, Storm, claim, statuses
from tests.transcripts import pattern, steps

pytestmark = pytest.mark.xdist_group("containers")

PAGE = "docs/containers.rst"
URL = "http://127.0.0.1:8778"
DATABASE, FIRST, SECOND = "placement_database_1", "placement_placement1_1", "placement_placement2_1"


class Composed:
    """The composition; ``bash`` runs a command of the page in its directory."""

    def __init__(self, engine, directory):
        self.engine, self.directory = engine, directory

    def bash(self, command):
        path = f"{Path(sys.executable).parent}:{self.engine.run(['printenv', 'PATH']).stdout.strip()}"
        # Two processes for each service suffice, and start faster.
        variables = {"PATH": path, "UWSGI_PROCESSES": "2"}
        with self.engine.health_checks():
            return self.engine.run(["bash", "-euc", command], cwd=self.directory, environment=variables).stdout

    @property
    def identity(self):
        """The headers of a client with the password."""
        password = re.search("PLACEMENT_PASSWORD=(.+)", (self.directory / ".env").read_text())[1]
        return {"Authorization": "Basic " + base64.b64encode(f"placement:{password}".encode()).decode()}

    @contextlib.contextmanager
    def storm(self):
        """Run clients of haproxy during a block."""
        with self.engine.network():
            yield Storm(URL, self.identity)

    def claims_of(self, container):
        """Return the number of claims that a service has answered."""
        return len(re.findall('"PUT /allocations/.* status: (?:204|409)', self.engine.log(container)))


@pytest.fixture(scope="module")
def composed(engine, checkout):
    """The composition, started by the page's commands; its first requests have the responses shown there."""
    composition = Composed(engine, checkout)
    make, sent, end = blocks_of(__file__, PAGE, "console")
    try:
        composition.bash("\n".join(command for command, _ in steps(make.text)))
        wait(composition)
        printed = composition.bash("\n".join(command for command, _ in steps(sent.text)))
        assert pattern(steps(sent.text)[-1][1]).fullmatch(printed.strip()), printed
        yield composition
    finally:
        composition.bash(f"{steps(end.text)[-1][0]} --volumes --timeout 1")


def wait(composed):
    """Return once both services have answered a request through haproxy."""

    def has_served(container):
        for _ in range(4):
            storm.ask("GET", "/traits")
        return '"GET /traits' in composed.engine.log(container)

    with composed.storm() as storm:
        for container in (FIRST, SECOND):
            children.until(functools.partial(has_served, container), f"{container} does not serve")


def test_a_new_database_is_not_unhealthy_while_the_services_wait_for_it(composed):
    """An unhealthy database would end `docker compose up`."""
    start_period = composed.engine.podman("inspect", "--format", "{{.Config.Healthcheck.StartPeriod}}", DATABASE)
    minutes, seconds = re.fullmatch(r"(\d+)m(\d+)s", start_period).groups()
    group = "OS_PLACEMENT_DATABASE__"
    tries, pause = (
        int(composed.engine.podman("exec", FIRST, "printenv", f"{group}{name}"))
        for name in ("MAX_RETRIES", "RETRY_INTERVAL")
    )
    assert 60 * int(minutes) + int(seconds) >= tries * pause


def test_root_can_reach_the_database_only_from_its_own_container(composed):
    statement = "SELECT host FROM mysql.user WHERE user = 'root'"
    words = ("mariadb", "--skip-column-names", "--execute", statement)
    assert composed.engine.podman("exec", "--user", "root", DATABASE, *words) == "localhost"


def test_the_services_have_room_for_the_index_file(composed):
    """By default /dev/shm of a container has 64 MB."""
    size = composed.engine.podman("exec", FIRST, "stat", "--file-system", "--format", "%b %S", "/dev/shm")
    blocks, length = map(int, size.split())
    assert blocks * length == 1024**3


def test_claims_through_both_services_never_exceed_an_inventory(composed):
    """Of 12 claims of 1 on each of 8 providers with a capacity of 8, the first 8 succeed."""
    with composed.storm() as storm:
        before = composed.claims_of(FIRST), composed.claims_of(SECOND)
        for _ in range(8):
            provider = storm.provider(VCPU=8)
            counts = statuses(storm.together(*(claim([provider]) for _ in range(12))))
            assert counts == {204: 8, 409: 4}
            assert storm.usage(provider) == 8
    for container, claims_before in zip((FIRST, SECOND), before, strict=True):
        assert composed.claims_of(container) > claims_before


def test_no_claim_is_lost_or_counted_twice_while_a_service_is_killed(composed):
    """The usage is at least the number of 204s, and at most this plus the number of lost responses."""
    with composed.storm() as storm:
        provider = storm.provider(VCPU=1_000_000)
        storm.history.clear()
        stop = threading.Event()

        def claim_repeatedly():
            while not stop.is_set():
                storm.ask(*claim([provider]))

        clients = [threading.Thread(target=claim_repeatedly) for _ in range(6)]
        for client in clients:
            client.start()
        try:
            children.until(lambda: len(storm.history) > 40)
            composed.engine.podman("kill", "--signal", "KILL", FIRST)
            killed = len(storm.history)
            children.until(lambda: len(storm.history) > killed + 40)
        finally:
            stop.set()
            for client in clients:
                client.join()
        counts = statuses([event.answer for event in storm.history])
        lost = sum(counts.pop(status, 0) for status in (NONE.status, 502, 503))
        assert {*counts} <= {204, 409}, counts
        assert counts[204] <= storm.usage(provider) <= counts[204] + lost


def test_a_service_that_is_replaced_gets_requests_again(composed):
    """The new container has another address."""
    address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    engine = composed.engine
    before = engine.podman("inspect", "--format", address, SECOND)
    engine.podman("rm", "--force", "--time", "1", "--volumes", FIRST, SECOND)
    composed.bash("podman-compose up --detach")
    assert engine.podman("inspect", "--format", address, SECOND) != before
    wait(composed)


def test_a_new_version_replaces_the_old_one(composed):
    """All containers are replaced, although compose.yaml is unchanged; the data remains."""
    *_, end = blocks_of(__file__, PAGE, "console")
    (command,) = (command for command, _ in steps(end.text) if " up " in command)
    with composed.storm() as storm:
        provider = storm.provider(VCPU=8)
        assert statuses(storm.together(claim([provider]))) == {204: 1}
    containers = ("inspect", "--format", "{{.Id}}", FIRST, SECOND, DATABASE)
    before = composed.engine.podman(*containers).split()
    composed.bash(command)
    assert {*before}.isdisjoint(composed.engine.podman(*containers).split())
    wait(composed)
    with composed.storm() as storm:
        assert storm.usage(provider) == 1


def test_a_service_leaves_the_schema_of_a_server_to_the_job(composed):
    engine = composed.engine
    statements = "CREATE DATABASE empty; GRANT ALL ON empty.* TO placement@'%'"
    engine.podman("exec", "--user", "root", DATABASE, "mariadb", "--execute", statements)
    url = engine.podman("exec", FIRST, "printenv", "OS_PLACEMENT_DATABASE__CONNECTION")
    variable = f"OS_PLACEMENT_DATABASE__CONNECTION={url.replace('/placement?', '/empty?')}"
    variables = ("--env", variable, "--env", "PLACEMENT_PASSWORD=secret")
    with engine.container("early", "--network", "placement_default", *variables, IMAGE):
        assert engine.exit_code("early") == 22
        assert "The database has no tables yet" in engine.log("early")
