"""Every gabbit under gabbits/ passes: in this process on SQLite, and over HTTP on each kind of database.

A test is a gabbit, that is a file, and a subtest is one of its requests.  In process a gabbit has a clean database;
over HTTP all gabbits share one, and each uses names and uuids of its own.

With GABBI_URL in the environment the gabbits run against that service.  Its database must be new, because a run leaves
its data behind.  With GABBI_REFERENCE=1 the service is the reference implementation: the requests in divergences.yaml,
which it answers differently, are skipped.
"""

import collections
import itertools
import os
import pathlib
import re
import unittest
import urllib.parse
import uuid

import pytest
import yaml
from gabbi import handlers, suitemaker
from oslo_config import cfg

from placement import conf, deploy
from tests import running, servers
from tests.conftest import missing

HERE = pathlib.Path(__file__).parent
DIRECTORY = HERE.parent.parent / "gabbits"
GABBIT_FILES = sorted(DIRECTORY.glob("*/*.yaml"))
URL = os.environ.get("GABBI_URL")
DIVERGENCES = yaml.safe_load((HERE / "divergences.yaml").read_text())


def name_of(gabbit):
    """Return the name of a gabbit, such as inventory/replace_sets_all_inventories."""
    return f"{gabbit.parent.name}/{gabbit.stem}"


each_gabbit = pytest.mark.parametrize("gabbit", GABBIT_FILES, ids=name_of)


def cases_of(gabbit, host, port=None, application=None):
    """Return the requests of a gabbit as gabbi's test cases, in order, for a server or for this application."""
    suite = yaml.safe_load(gabbit.read_text())
    # There is no TLS here.  With the default every request would load the certificates of the system.
    suite.setdefault("defaults", {})["cert_validate"] = False
    intercept = (lambda: application) if application else None
    known = [handler() for handler in handlers.RESPONSE_HANDLERS]
    loader = unittest.TestLoader()
    return suitemaker.test_suite_from_dict(
        loader, name_of(gabbit), suite, str(gabbit.parent), host, port, None, intercept, handlers=known
    )


def run(requests, subtests, skipped=()):
    """Send the requests in order; one with another reply than expected fails its subtest."""
    for request in requests:
        name = request.test_data["name"]
        with subtests.test(name):
            if name in skipped:
                request.has_run = True  # else the next request would send it first
                pytest.skip(skipped[name])
            result = unittest.TestResult()
            request.run(result)
            request.http.client.close()
            for _, trace in result.failures:
                pytest.fail(trace[trace.find("AssertionError: ") :], pytrace=False)
            assert (result.testsRun, result.errors, result.skipped) == (1, [], [])


def run_over_http(gabbit, url, subtests, skipped=()):
    address = urllib.parse.urlsplit(url)
    run(cases_of(gabbit, address.hostname, address.port), subtests, skipped)


if URL:

    @each_gabbit
    def test_gabbit_at_url(gabbit, subtests):
        skipped = DIVERGENCES.get(name_of(gabbit), {}) if os.environ.get("GABBI_REFERENCE") else {}
        run_over_http(gabbit, URL, subtests, skipped)

else:

    @each_gabbit
    @pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
    def test_gabbit_in_process(gabbit, application, subtests):
        run(cases_of(gabbit, uuid.uuid4().hex, application=application), subtests)

    @each_gabbit
    def test_gabbit_over_http(gabbit, service, subtests):
        run_over_http(gabbit, service.url, subtests)


@pytest.fixture
def application(database):
    """The service on a clean database."""
    configuration = cfg.ConfigOpts()
    conf.register(configuration)
    configuration.set_override("auth_strategy", "noauth2", group="api")
    configuration.set_override("connection", str(database.engine.url), group="placement_database")
    configuration.set_override("sync_on_startup", True, group="placement_database")
    configuration([], project=conf.PROJECT, default_config_files=[])
    return deploy.loadapp(configuration, database)


@pytest.fixture(scope="session")
def service(backend):
    """The service in processes of its own, on a database that all gabbits share."""
    url = backend.create_database()
    try:
        with running.uwsgi(url) as running_service:
            yield running_service
    except servers.Missing as reason:
        missing(reason)
    finally:
        backend.drop_database(url)


# --- rules for gabbits -----------------------------------------------------------------------------------------------

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
CUSTOM = re.compile(r"\bCUSTOM_[A-Z0-9_]+\b")
SHARED_NAMES = {"00000000-0000-0000-0000-000000000000", "CUSTOM_MAGIC"}  # the default project, and a trait in messages


def test_no_two_gabbits_use_the_same_names():
    owners = collections.defaultdict(set)
    for gabbit in GABBIT_FILES:
        text = gabbit.read_text()
        for thing in itertools.chain(map(str.lower, UUID.findall(text)), CUSTOM.findall(text)):
            owners[thing].add(name_of(gabbit))
    shared = {thing: gabbits for thing, gabbits in owners.items() if len(gabbits) > 1}
    assert {thing: gabbits for thing, gabbits in shared.items() if thing not in SHARED_NAMES} == {}


@each_gabbit
def test_gabbit_has_a_name_a_head_and_distinct_requests(gabbit):
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", gabbit.stem)
    assert gabbit.read_text().startswith("# ")
    assert [request for request, count in collections.Counter(requests_of(gabbit)).items() if count > 1] == []


def test_divergences_are_requests_of_gabbits():
    for name, divergences in DIVERGENCES.items():
        assert divergences.keys() <= set(requests_of(DIRECTORY / f"{name}.yaml"))


def requests_of(gabbit):
    return [request["name"] for request in yaml.safe_load(gabbit.read_text())["tests"]]
