"""Fixtures of all tests: a database of any kind, empty or with the schema and the standard rows."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from types import SimpleNamespace

import hypothesis
import pytest

from placement.db.database import opened
from tests import children, compiled, servers, synced

# No test fails because the machine is busy, or because few of the examples that were drawn are of use.
_CHANCES = [
    check for check in hypothesis.HealthCheck if check.name in ("too_slow", "filter_too_much", "data_too_large")
]
PATIENT = hypothesis.settings(deadline=None, suppress_health_check=_CHANCES)
hypothesis.settings.register_profile("default", PATIENT)
# A gate tries the same examples each time, so what fails there is the change; runs of developers try others each time.
hypothesis.settings.register_profile("ci", PATIENT, print_blob=True, derandomize=True)
hypothesis.settings.register_profile("long", PATIENT, print_blob=True, max_examples=2000)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser):
    parser.addoption(
        "--databases",
        default=",".join(servers.KINDS),
        help="the kinds of database to test with, separated by commas (default: %(default)s)",
    )


def pytest_configure(config):
    compiled.share()
    unknown = set(chosen(config)) - set(servers.KINDS)
    if unknown:
        raise pytest.UsageError(f"--databases: {', '.join(sorted(unknown))} is none of {', '.join(servers.KINDS)}")
    if not hasattr(config, "workerinput"):
        children.begin_run()


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        children.end_run()


def pytest_generate_tests(metafunc):
    """Run a test with a database once per kind, unless it names its kinds itself."""
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "backend" in metafunc.fixturenames and "backend" not in named:
        metafunc.parametrize("backend", chosen(metafunc.config), indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Tests that share a service and its database run in one process, so that it starts once."""
    if not is_long():
        remaining = _in_turn(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in remaining])
        items[:] = [item for item in items if item in remaining]
    for item in items:
        services = {"service", "services"} & {*item.fixturenames}
        shared = item.path.parent.name in ("gabbi", "live", "load") and services
        # The service of these tests is one for all modules.
        group = item.path.stem if shared else "clients" if "clients" in item.fixturenames else None
        if group and not item.get_closest_marker("xdist_group"):
            kind = item.callspec.params["backend"]
            item.add_marker(pytest.mark.xdist_group(f"{group}-{kind}"))


def _in_turn(items):
    """Return what a short run has: tests marked ``in_turn`` run on one database each, in turn; long runs have all."""
    kinds, remaining = defaultdict(list), set()
    for item in items:
        if item.get_closest_marker("in_turn") and "backend" in item.fixturenames:
            kind = item.callspec.params["backend"]
            kinds[item.nodeid.replace(kind, "")].append((kind, item))
        else:
            remaining.add(item)
    for turn, several in enumerate(kinds.values()):
        several.sort(key=lambda pair: pair[0])
        remaining.add(several[turn % len(several)][1])
    return remaining


def is_long():
    """Whether this is a run of ``make test-long``."""
    return hypothesis.settings.default.max_examples > 100


def chosen(config):
    """Return the kinds of database to test with."""
    return [kind for kind in config.getoption("--databases").split(",") if kind]


@pytest.fixture
def in_process(capfd):
    """Run a command in this process, ``in_process(manage, "db", "sync")``: its exit code, stdout and stderr.

    A command sets up the log of its process; after the test the log is restored.
    """

    def run(module, *words):
        code = module.main(words)
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    root = logging.getLogger()
    handlers, levels = list(root.handlers), _levels()
    yield run
    root.handlers[:] = handlers
    for name in _levels():
        logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))


def _levels():
    """Return the state of all loggers, the root's under the name None."""
    named = logging.root.manager.loggerDict.items()
    return {None: logging.root.level} | {name: each.level for name, each in named if isinstance(each, logging.Logger)}


def missing(reason):
    """Skip the test because a program is missing, with its name; fail where all programs are required."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (CI runs everything)", pytrace=False)
    pytest.skip(str(reason))


def shared_server(kind):
    """The server of this kind on which tests make their databases, where there is one."""
    try:
        return servers.shared(kind)
    except servers.Missing as reason:
        return missing(reason)


@pytest.fixture(scope="session")
def backend(request):
    """The server that the databases of the test are made on: servers.SQLite, MariaDB or PostgreSQL."""
    if request.param not in chosen(request.config):
        pytest.skip(f"{request.param} is not among --databases")
    return shared_server(request.param)


@pytest.fixture
def database_url(backend):
    """The URL of a new database without a single table."""
    yield from _new_database(backend)


@pytest.fixture(scope="module")
def module_database_url(backend):
    """The URL of a new database without a single table, which all tests of the module share."""
    yield from _new_database(backend)


def _new_database(backend):
    url = backend.create_database()
    yield url
    backend.drop_database(url)


@pytest.fixture(scope="session")
def synced_database(backend):
    """The database that `database` returns to one test after the other."""
    kept = synced.Kept(backend)
    yield kept
    kept.drop()


@pytest.fixture
def database(synced_database):
    """A placement.db.database.Database with the schema, the standard classes and traits, and nothing else."""
    with opened(synced_database.clean()) as opened_database:
        yield opened_database


@pytest.fixture
def private_server(request):
    """A server of the test's own, to kill and restart; parametrize it with "mariadb" and "postgresql"."""
    if request.param not in chosen(request.config):
        pytest.skip(f"{request.param} is not among --databases")
    try:
        with servers.private(request.param) as server:
            yield server
    except servers.Missing as reason:
        missing(reason)
