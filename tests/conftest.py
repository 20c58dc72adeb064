"""Fixtures of all tests: a database of any kind, empty or with the schema and the standard rows.

Each directory tests one kind of property, and each property is tested in one of them.  A file has the path of the
package that it tests, and the name of a module or a behaviour.

gabbi      requests and responses: gabbits/, in process on SQLite and over HTTP
unit       one module without a database: rules, formats, schemas, permissions
search     the search on snapshots: its candidates equal the candidates of a brute force
index      the index in memory equals the content of the database
db         rows, transactions, locks and faults, which no response shows; a short run has most tests on one database
load       many clients at once in real processes: safety and liveness
live       processes started and used as operators do: web servers, commands, clients, restores
docs       examples and blocks of the documents
histories  bounded runs of jepsen/, which contains the long ones
projects   fixtures for the tests of other projects
extensions/console  pages, in process and in a browser
extensions/openapi  requests drawn from the documents

A test with the fixture ``database`` (with the schema and the standard rows, exclusive to it) or ``backend`` exists once
for each kind of database.  A short run has it on one, which a hash of its id selects.  Mark it ``every_database`` if it
is about locks, races, SQL or migrations, and ``long`` if only ``make test-long`` should run it (pyproject.toml).

A test that needs another size or pause sets a public constant of the module, such as ``BATCH``.

model, nonsense and nova contain no tests: they provide the others with models, odd values and nova's responses.

Tests of extensions are in directories named extensions.  Without them all others must pass, except tests of the
repository as a whole (live/test_core_alone.py).
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import logging
import os
import signal
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

from tests import children, reused_database, servers, statement_cache, undecided
from tests.made import opened
from tests.time_left import TimeLeft

# No test fails because the machine is busy, or because few of the drawn examples are valid.
_CHANCES = [
    check for check in hypothesis.HealthCheck if check.name in ("too_slow", "filter_too_much", "data_too_large")
]
PATIENT = hypothesis.settings(deadline=None, suppress_health_check=_CHANCES, print_blob=True)
# A short run tries the same examples each time, so that a failure comes from the change; `make test-long` is random.
hypothesis.settings.register_profile("short", PATIENT, derandomize=True, max_examples=16)
hypothesis.settings.register_profile("long", PATIENT, max_examples=1000)
hypothesis.settings.load_profile("short")


def pytest_addoption(parser):
    try:
        parser.addoption(
            "--databases",
            default=",".join(servers.KINDS),
            help="the kinds of database to test with, separated by commas (default: %(default)s)",
        )
    except ValueError as error:  # jepsen/tests/conftest.py defines this hook, too
        raise pytest.UsageError(
            "jepsen/tests and tests need separate pytest sessions: use make jepsen and make test"
        ) from error


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job ignores it, and so do its children
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Variables of the caller would make services of the tests send traces.
    for name in [variable for variable in os.environ if variable.startswith("OTEL_")]:
        del os.environ[name]
    # A proxy of the caller does not reach the services on this machine.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "localhost"]))
    statement_cache.share()
    unknown = set(chosen(config)) - set(servers.KINDS)
    if unknown:
        raise pytest.UsageError(
            f"--databases: unknown: {', '.join(sorted(unknown))}; the kinds are {', '.join(servers.KINDS)}"
        )
    if not hasattr(config, "workerinput"):
        children.begin_run()
        config.pluginmanager.register(TimeLeft(config))
        config.pluginmanager.register(undecided)


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        children.end_run()


def pytest_generate_tests(metafunc):
    """Run a test with a database once per kind, unless it names its kinds itself."""
    parametrized = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "backend" in metafunc.fixturenames and "backend" not in parametrized:
        metafunc.parametrize("backend", chosen(metafunc.config), indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect tests without the cyclic garbage collector, which would take half of the time for a million objects.

    They live until the end, so later collections skip them.
    """
    gc.disable()
    try:
        if hasattr(session.config, "workerinput"):
            _import_from_another_file_on(session.config)
        return (yield)
    finally:
        gc.freeze()
        # A test creates tens of thousands of objects, few of them in cycles.
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


def _import_from_another_file_on(config):
    """Import the tests, each worker starting at another file: otherwise each would compile all files of a new clone."""
    files = sorted(
        file for directory in config.args if os.path.isdir(directory) for file in Path(directory).rglob("test_*.py")
    )
    number, count = int(config.workerinput["workerid"].removeprefix("gw")), config.workerinput["workercount"]
    first = len(files) * number // count
    for file in files[first:] + files[:first]:
        name = ".".join(file.resolve().relative_to(config.rootpath).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # pytest imports it again, and reports it
            importlib.import_module(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Select the tests of a short run; those that share a service run in one process, so that it starts once."""
    if not is_long():
        remaining = set(_of_a_short_run(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in remaining])
        items[:] = [item for item in items if item in remaining]
    for item in items:
        if not item.get_closest_marker("xdist_group") and (group := _group_of(item)):
            item.add_marker(pytest.mark.xdist_group(group))


def _group_of(item):
    """Return the name of the group of tests that run in one process with this one; None if any process may run it."""
    file = item.nodeid.partition("::")[0]
    directories = {*file.split("/")}
    if {"unit", "docs"} & directories:
        return file  # distributing one of these tests takes as long as running it
    if "clients" in item.fixturenames:
        return f"clients-{item.callspec.params['backend']}"  # they share one service across modules
    if {"gabbi", "live", "load"} & directories and {"service", "services"} & {*item.fixturenames}:
        return f"{item.path.stem}-{item.callspec.params['backend']}"
    return None


#: The weights of the kinds of database in a draw, if not 1.
_TICKETS = {servers.SQLite.kind: 8}


def _of_a_short_run(items):
    """Return the tests of a short run: none marked ``long``, and one database for each not marked ``every_database``.

    A hash of the test's id selects the database, so it is the same in each run, whatever other tests there are.  SQLite
    gets eight of ten tests: they depend on no dialect, and a test on a server takes three to five times as long.
    """
    kinds = defaultdict(list)
    for item in items:
        if item.get_closest_marker("long"):
            continue
        if "backend" not in item.fixturenames or item.get_closest_marker("every_database"):
            yield item
        else:
            kind = item.callspec.params["backend"]
            tickets = [f"{kind} {item.nodeid.replace(kind, '')} {number}" for number in range(_TICKETS.get(kind, 1))]
            drawn = max(hashlib.sha256(ticket.encode()).digest() for ticket in tickets)
            kinds[item.nodeid.replace(kind, "")].append((drawn, item))
    for variants in kinds.values():
        yield max(variants, key=lambda pair: pair[0])[1]


def is_long():
    """Whether this is a run of ``make test-long``."""
    return hypothesis.settings.default.max_examples > 100


def chosen(config):
    """Return the kinds of database to test with."""
    return [kind for kind in config.getoption("--databases").split(",") if kind]


@pytest.fixture
def restored_log():
    """Restore, after the test, the logging of the process, which commands and services configure."""
    root = logging.getLogger()
    handlers, levels = list(root.handlers), _levels()
    factory, hook = logging.getLogRecordFactory(), sys.excepthook
    yield
    root.handlers[:] = handlers
    for name, level in _levels().items():
        if level != (before := levels.get(name, logging.NOTSET)):  # each change empties the caches of all loggers
            logging.getLogger(name).setLevel(before)
    logging.setLogRecordFactory(factory)
    sys.excepthook = hook


@pytest.fixture
def restored_signals():
    """Restore, after the test, the handlers of signals, which some commands replace."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def in_process(capfd, restored_log, restored_signals):
    """Run a command in this process, ``in_process(manage, "db", "sync")``: its exit code, stdout and stderr."""

    def run(module, *words):
        code = module.main(words)
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


def _levels():
    """Return the state of all loggers, the root's under the name None."""
    loggers = logging.root.manager.loggerDict.items()
    return {None: logging.root.level} | {
        name: logger.level for name, logger in loggers if isinstance(logger, logging.Logger)
    }


#: The property of a report with the name of the missing program.
_MISSING = "missing"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Skip a test, a subtest or a fixture that raised ``servers.Missing``; in CI let it fail."""
    reason = call.excinfo and call.excinfo.value
    if not isinstance(reason, servers.Missing):
        return (yield)
    try:
        if os.environ.get("CI"):
            pytest.fail(f"{reason} (CI runs everything)", pytrace=False)
        pytest.skip(str(reason))
    except (pytest.fail.Exception, pytest.skip.Exception) as outcome:
        outcome.__suppress_context__ = True
        call.excinfo = pytest.ExceptionInfo.from_exception(outcome)
    report = yield
    report.user_properties = [*report.user_properties, (_MISSING, str(reason))]
    return report


def pytest_terminal_summary(terminalreporter):
    """Print why tests were skipped, a line for each reason, missing programs first."""
    programs, other_reasons = Counter(), Counter()
    # pytest does not show skipped subtests, whose category is "".
    for category, reports in terminalreporter.stats.items():
        for report in reports:
            program = dict(getattr(report, "user_properties", ())).get(_MISSING)
            if program is not None and report.skipped:
                programs[program] += 1
            elif category == "skipped":
                other_reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    for title, reasons in (("skipped for lack of programs", programs), ("skipped", other_reasons)):
        if reasons:
            terminalreporter.section(title)
            for reason, count in reasons.most_common():
                terminalreporter.line(f"{count:6}  {reason}")


@pytest.fixture(scope="session")
def backend(request):
    """The server for the databases of the test: servers.SQLite, MariaDB or PostgreSQL."""
    if request.param not in chosen(request.config):
        pytest.skip(f"{request.param} is not among --databases")
    return servers.shared(request.param)


@pytest.fixture
def database_url(backend):
    """The URL of a new database without tables."""
    yield from _new_database(backend)


@pytest.fixture(scope="module")
def module_database_url(backend):
    """The URL of a new database without tables, which all tests of the module share."""
    yield from _new_database(backend)


def _new_database(backend):
    url = backend.create_database()
    yield url
    backend.drop_database(url)


@pytest.fixture(scope="session")
def synced_databases():
    """The databases of `synced_database`, by kind: a fixture that uses `backend` is torn down when the kind changes."""
    databases = {}
    yield databases
    for database in databases.values():
        database.drop()


@pytest.fixture(scope="session")
def synced_database(backend, synced_databases):
    """The database that the fixture `database` provides to one test after another."""
    if backend.kind not in synced_databases:
        synced_databases[backend.kind] = reused_database.ReusedDatabase(backend)
    return synced_databases[backend.kind]


@pytest.fixture
def database(synced_database):
    """A placement.db.database.Database with the schema, the standard classes and traits, and nothing else."""
    with opened(synced_database.clean()) as opened_database:
        yield opened_database


@pytest.fixture
def private_server(request):
    """A server exclusive to the test, to kill and restart; parametrize it with "mariadb" and "postgresql"."""
    if request.param not in chosen(request.config):
        pytest.skip(f"{request.param} is not among --databases")
    with servers.private(request.param) as server:
        yield server
