"""Every gabbit under gabbits/ passes: in this process on SQLite, and over HTTP on MariaDB and PostgreSQL.

A test is a gabbit, which is a file, and a subtest is one of its requests.  In process each gabbit has a clean database;
over HTTP all gabbits share one, and each uses its own names and uuids.  A short run sends every third gabbit over HTTP,
on one of the two databases.

With GABBI_URL in the environment the gabbits run against that service.  Its database must be new, because a run leaves
its data behind.  With GABBI_REFERENCE=1 the service is the reference implementation, OpenStack Placement: the requests
in divergences.yaml, to which it responds differently, are skipped, and so are the gabbits of gabbits/extensions.  With
GABBI_REFERENCE=ironic the service is Ironic, and only the gabbits of gabbits/extensions/baremetal run.
"""

import collections
import contextlib
import functools
import itertools
import os
import pathlib
import re
import unittest
import urllib.parse
import uuid
import zlib

import jsonpath_ng.ext
import pytest
import yaml
from gabbi import handlers, suitemaker
from oslo_config import cfg

from placement import conf, deploy, extension
from tests import apis, children, ironic, reply_conformance, running, servers

HERE = pathlib.Path(__file__).parent
DIRECTORY = HERE.parent.parent / "gabbits"
GABBIT_FILES = sorted(DIRECTORY.rglob("*.yaml"))
URL = os.environ.get("GABBI_URL")
REFERENCE = os.environ.get("GABBI_REFERENCE")
IS_IRONIC = REFERENCE == "ironic"

# gabbi parses a JSONPath expression for each value that it compares, and most expressions recur.
jsonpath_ng.ext.parse = functools.cache(jsonpath_ng.ext.parse)


def parse(text):
    """Parse a YAML text, with libyaml if PyYAML includes it, which takes a tenth of the time."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


DIVERGENCES = {
    name: requests
    for path in sorted(HERE.rglob("divergences.yaml"))
    for name, requests in parse(path.read_text()).items()
}


def name_of(gabbit):
    """Return the name of a gabbit, such as inventory/replace_sets_all_inventories, or v1/claim/a_claim_has_a_place."""
    return str(gabbit.relative_to(DIRECTORY).with_suffix("")).removeprefix("extensions/")


def has_reference(gabbit):
    """Whether the reference implementation serves the API of the gabbit; Ironic has no users here, so no policy."""
    api, noun = name_of(gabbit).split("/")[:2]
    return api not in {"v1", "console"} and (api == "baremetal") == IS_IRONIC and noun not in {"placement", "policy"}


def has_document(gabbit):
    """Whether an OpenAPI document describes the API of the gabbit, so that responses are compared with it."""
    return bool(reply_conformance.APIS) and not gabbit.is_relative_to(DIRECTORY / "extensions/baremetal")


#: The databases of the gabbits over HTTP; SQLite serves the gabbits in process.
OVER_HTTP = [kind for kind in servers.KINDS if kind != servers.SQLite.kind]


def enabled_groups(gabbit):
    """Return the option groups of the optional APIs to enable: all installed ones without pages.

    APIs with pages redirect browsers from /, so only their own gabbits enable them.
    """
    return tuple(
        installed.name
        for installed in extension.installed_extensions().values()
        if installed.is_optional
        and (not installed.api().has_pages or gabbit.is_relative_to(DIRECTORY / "extensions" / installed.name))
    )


BY_NAME = {name_of(gabbit): gabbit for gabbit in GABBIT_FILES}
each_gabbit = pytest.mark.parametrize("gabbit", GABBIT_FILES, ids=name_of)
each_gabbit_or_third = pytest.mark.parametrize(
    "gabbit",
    [
        pytest.param(gabbit, marks=[pytest.mark.long] if zlib.crc32(name_of(gabbit).encode()) % 3 else [])
        for gabbit in GABBIT_FILES
    ],
    ids=name_of,
)


def cases_of(gabbit, host, port=None, application=None):
    """Return the requests of a gabbit as gabbi's test cases, in order, for a server or for this application."""
    text = gabbit.read_text()
    suite = parse(ironic.without_prefix(text) if IS_IRONIC else text)
    # There is no TLS here.  By default every request would load the certificates of the system.
    suite.setdefault("defaults", {})["cert_validate"] = False
    intercept = (lambda: application) if application else None
    response_handlers = [handler() for handler in handlers.RESPONSE_HANDLERS]
    loader = unittest.TestLoader()
    return suitemaker.test_suite_from_dict(
        loader, name_of(gabbit), suite, str(gabbit.parent), host, port, None, intercept, handlers=response_handlers
    )


def run(requests, subtests, skipped=()):
    """Send the requests in order; an unexpected response fails the request's subtest."""
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
            if IS_IRONIC:
                ironic.wait_for_the_effect(request)


def run_over_http(gabbit, url, subtests, skipped=()):
    address = urllib.parse.urlsplit(url)
    run(cases_of(gabbit, address.hostname, address.port), subtests, skipped)


if URL:

    @each_gabbit
    def test_gabbit_at_url(gabbit, subtests):
        divergences = DIVERGENCES.get(name_of(gabbit), {}) if REFERENCE else {}
        if REFERENCE and not has_reference(gabbit):
            pytest.skip("the reference implementation does not serve this API")
        run_over_http(gabbit, URL, subtests, divergences)

else:

    @each_gabbit
    @pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
    def test_gabbit_in_process(gabbit, application, subtests):
        run(cases_of(gabbit, uuid.uuid4().hex, application=application), subtests)
        assert application.compared or not has_document(gabbit)

    @each_gabbit_or_third
    @pytest.mark.parametrize("backend", OVER_HTTP, indirect=True, scope="session")
    def test_gabbit_over_http(gabbit, services, subtests):
        run_over_http(gabbit, services(enabled_groups(gabbit)).url, subtests)


@pytest.fixture
def application(database, gabbit):
    """The service on a clean database; its responses are also compared with its OpenAPI documents."""
    configuration = cfg.ConfigOpts()
    conf.register(configuration)
    configuration.set_override("auth_strategy", "noauth2", group="api")
    configuration.set_override("connection", str(database.engine.url), group="placement_database")
    configuration.set_override("sync_on_startup", True, group="placement_database")
    configuration.set_override("index_directory", str(children.run_directory() / "index"), group="placement")
    for group in enabled_groups(gabbit):
        configuration.set_override("enabled", True, group=group)
    configuration([], project=conf.PROJECT, default_config_files=[])
    return reply_conformance.Described(deploy.loadapp(configuration, database))


@pytest.fixture(scope="session")
def services(backend):
    """Return a function that starts the service with the given APIs, in its own processes.

    All gabbits share its database.
    """
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(groups):
            url = backend.create_database()
            stack.callback(backend.drop_database, url)
            return stack.enter_context(running.uwsgi(url, options={group: {"enabled": True} for group in groups}))

        yield start


# --- rules for gabbits -----------------------------------------------------------------------------------------------

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
CUSTOM = re.compile(r"\bCUSTOM_[A-Z0-9_]+\b")
# The default project, a trait in messages, and the class of nodes without a class.
SHARED_NAMES = {"00000000-0000-0000-0000-000000000000", "CUSTOM_MAGIC", "CUSTOM_BAREMETAL_UNCLASSIFIED"}


def test_no_two_gabbits_use_the_same_names():
    owners = collections.defaultdict(set)
    for gabbit in GABBIT_FILES:
        text = gabbit.read_text()
        for name in itertools.chain(map(str.lower, UUID.findall(text)), CUSTOM.findall(text)):
            owners[name].add(name_of(gabbit))
    shared = {name: gabbits for name, gabbits in owners.items() if len(gabbits) > 1}
    assert {name: gabbits for name, gabbits in shared.items() if name not in SHARED_NAMES} == {}


@each_gabbit
def test_gabbit_has_a_name_a_head_and_distinct_requests(gabbit):
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", gabbit.stem)
    assert gabbit.read_text().startswith("# ")
    assert [request for request, count in collections.Counter(requests_of(gabbit)).items() if count > 1] == []


def test_every_route_has_a_gabbit_in_which_it_succeeds():
    succeeds = {(method, url.partition("?")[0]) for method, url in successes()}
    missing = []
    for api in apis.ALL:
        for path, methods in api.routes.items():
            pattern = re.compile(api.prefix + re.sub(r"\{\w+\}", "[^/]+", path))
            missing += [
                (api.name, method, path)
                for method in methods
                if not any(method == sent and pattern.fullmatch(url) for sent, url in succeeds)
            ]
    assert missing == []


def successes():
    """Yield the method and the URL of each request that is expected to succeed."""
    for gabbit in GABBIT_FILES:
        for request in parse(gabbit.read_text())["tests"]:
            if re.match("[23]", str(request.get("status", 200))):
                yield from ((key, value) for key, value in request.items() if key.isupper())


def test_divergences_are_requests_of_gabbits():
    for name, divergences in DIVERGENCES.items():
        assert divergences.keys() <= set(requests_of(BY_NAME[name]))


def requests_of(gabbit):
    return [request["name"] for request in parse(gabbit.read_text())["tests"]]
