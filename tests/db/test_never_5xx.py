"""No request gets a 5xx or SQL, and every error has the documented form.

Refused requests and reads change nothing.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus

import hypothesis
import pytest
import sqlalchemy as sa

from placement import deploy
from placement.db.schema.tables import (
    change_writers,
    consumer_types,
    metadata,
    placement_aggregates,
    projects,
    provider_changes,
    resource_classes,
    traits,
    users,
)
from tests import caller, made, servers, web
from tests.db.writes import ADDED
from tests.made import opened
from tests.nonsense.odd_values import (
    AGGREGATE,
    CONSUMER_GENERATION,
    CONSUMERS,
    MONSTERS,
    PROVIDER_GENERATION,
    PROVIDERS,
    Sent,
    traps_for,
    usual_headers,
)
from tests.nonsense.strategies import ROUTES, sent
from tests.nonsense.text_positions import PLACES
from tests.strategies import scale

#: Tables that any request may change: names and aggregates are created when first used, even by a refused request
#: (docs: api-consumers), and the feed and extensions do their own maintenance.
NOT_STATE = {
    *(projects, users, consumer_types, placement_aggregates),
    *(change_writers, provider_changes),
    *(table for module in ADDED for table in module.HOUSEKEEPING),
}
#: Tables with hundreds of standard rows: only custom rows, and the number of all rows, are compared.
STATE = [
    *(sa.select(table) for table in metadata.sorted_tables if table not in {*NOT_STATE, traits, resource_classes}),
    *(sa.select(table).where(table.c.name.startswith("CUSTOM_")) for table in (traits, resource_classes)),
    *(sa.select(sa.func.count()).select_from(table) for table in (traits, resource_classes)),
]

#: The names of tables of extensions, except words such as "events".
_TABLES = (table.name for addition in made.ADDITIONS for table in addition.tables if "_" in table.name)
SQL = re.compile(
    r"\bSELECT\b.*\bFROM\b|\bINSERT INTO\b|\bUPDATE\b.*\bSET\b|\bDELETE FROM\b|FOREIGN KEY|UNIQUE constraint|uniq_|"
    r"sqlite3?\b|pymysql|psycopg|sqlalche|IntegrityError|OperationalError|DataError|ProgrammingError|Traceback|"
    r"resource_provider_(?:traits|aggregates|id)|placement_aggregates|(?:class|consumer_type|root_provider)_id|"
    + "|".join((r"external_id|change_writers|provider_changes", *_TABLES)),
    re.DOTALL,
)


class Target:
    """A service with a few objects."""

    def __init__(self, synced_database, fill=None, **options):
        """Clean the database before the first request, and fill it with ``fill``, by default ``furnish``."""
        self._synced, self._fill, self._options = synced_database, fill or furnish, options
        self._opened = None

    def send(self, request, compare_tables):
        """Send a request; return the status line, headers and content, and whether the tables have changed."""
        if self._opened is None:
            self._open()
        before = self._state
        answer = exchange(self._app, request.environ)
        if compare_tables:
            self._state = rows(self._database)
        return *answer, self._state != before

    def _open(self):
        self._opened = opened(self._synced.clean())
        self._database = self._opened.__enter__()
        url = str(self._database.engine.url)
        conf = web.configuration(placement_database__connection=url, **self._options)
        self._app = deploy.loadapp(conf, self._database)
        self._fill(caller.inside(self._app))
        self._state = rows(self._database)

    def close(self):
        """Restore the first state for the next request."""
        if self._opened is not None:
            self._opened.__exit__(None, None, None)
            self._opened = None


def rows(database):
    """Return all rows of each table, sorted, because PostgreSQL changes their order once it has analysed a table."""
    with database.engine.connect() as connection:
        return [sorted(connection.execute(query).all(), key=repr) for query in STATE]


def exchange(app, environ):
    """Return the status line, headers and content of a response."""
    reported = []
    content = b"".join(app(environ, lambda *answer: reported.append(answer)))
    [(status, headers)] = [answer[:2] for answer in reported]
    return status, headers, content


def furnish(call):
    """Create three providers, one below another, with every kind of data, two consumers, and spare names."""

    def succeed(method, path, body=None):
        answer = call(method, path, 39, body)
        assert answer.status < 300, answer

    root, child, other = PROVIDERS
    for path in ("resource_classes/CUSTOM_CLASS", "resource_classes/CUSTOM_SPARE", "traits/CUSTOM_TRAIT"):
        succeed("PUT", f"/{path}")
    succeed("PUT", "/traits/CUSTOM_SPARE_TRAIT")
    succeed("POST", "/resource_providers", {"name": "root", "uuid": root})
    succeed("POST", "/resource_providers", {"name": "child", "uuid": child, "parent_provider_uuid": root})
    succeed("POST", "/resource_providers", {"name": "other", "uuid": other})
    for uuid in (root, child):
        path = f"/resource_providers/{uuid}"
        inventories = {"VCPU": {"total": 8}, "DISK_GB": {"total": 8, "reserved": 1}, "CUSTOM_CLASS": {"total": 2}}
        succeed("PUT", f"{path}/inventories", {"resource_provider_generation": 0, "inventories": inventories})
        names = ["CUSTOM_TRAIT", "HW_CPU_X86_AVX"]
        succeed("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": names})
        succeed("PUT", f"{path}/aggregates", {"resource_provider_generation": 2, "aggregates": [AGGREGATE]})
    for consumer in CONSUMERS:
        claim = {
            "allocations": {uuid: {"resources": {"VCPU": 1, "DISK_GB": 1}} for uuid in (root, child)},
            "project_id": "project",
            "user_id": "user",
            "consumer_type": "INSTANCE",
            "consumer_generation": None,
        }
        succeed("PUT", f"/allocations/{consumer}", claim)
    assert call("GET", f"/resource_providers/{root}").body["generation"] == PROVIDER_GENERATION
    assert call("GET", f"/allocations/{CONSUMERS[0]}").body["consumer_generation"] == CONSUMER_GENERATION


@pytest.fixture
def target(synced_database):
    target = Target(synced_database)
    yield target
    target.close()


def send_and_check(target, request, compare_tables=True, check_error=None):
    """Send the request; check the response, by default with ``assert_error``, and the changes of the database."""
    status_line, headers, content, changed = target.send(request, compare_tables)
    status = int(status_line[:3])
    assert status < 500, (request, status_line, content)
    assert_well_formed(status_line, headers, content)
    if status >= 400:
        assert not changed, (request, "refused, but changed a table")
        (check_error or assert_error)(status, dict(headers), content, request)
    elif request.method not in ("PUT", "POST", "PATCH", "DELETE"):
        assert not changed, (request, "read, but changed a table")
    return status, changed


@pytest.mark.every_database
def test_no_request_breaks_the_service(backend, target):
    @hypothesis.settings(max_examples=scale(400 if backend.kind == servers.SQLite.kind else 100))
    @hypothesis.given(sent())
    def send_any_request(request):
        status, changed = send_and_check(target, request)
        hypothesis.event(f"{request.method} {status}")
        if changed:
            target.close()

    send_any_request()


def test_no_text_breaks_the_service_wherever_it_is_sent(target):
    """A short run sends each place a quarter of the texts, and each text to many places; a long run sends all."""
    for number, place in enumerate(PLACES):
        for trap in traps_for(number, 4):
            send_and_check(target, place.fill(trap), compare_tables=place.method != "GET")


@pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
def test_no_body_breaks_a_route(target):
    for method, path, endpoint in ROUTES:
        if endpoint.body is not None:
            filled = path.format(uuid=PROVIDERS[0], consumer_uuid=CONSUMERS[0], resource_class="VCPU", name="VCPU")
            version = "1.6" if endpoint.until else "1.39"
            for monster in MONSTERS:
                send_and_check(target, Sent(method, filled.encode(), b"", usual_headers(monster, version), monster))


def assert_well_formed(status_line, headers, content):
    """Check the rules of HTTP and WSGI."""
    assert re.fullmatch(r"\d{3} [A-Za-z -]+", status_line)
    for name, value in headers:
        assert re.fullmatch(r"[A-Za-z-]+", name)
        assert re.fullmatch(r"[\t\x20-\x7e\x80-\xff]*", value), f"{name} would end the header, or break it"
    reported = {name.lower(): value for name, value in headers}
    assert not content or reported["content-length"] == str(len(content))
    assert not content or "content-type" in reported
    assert re.fullmatch(r"req-[0-9a-f-]{36}", reported["x-openstack-request-id"])
    if reported.get("content-type") == "application/json":
        json.loads(content)


def assert_error(status, headers, content, request):
    """Check the form that the client accepts, without SQL (docs: api-accept, api-errors, api-error-codes)."""
    if status == 401 or request.method == "HEAD":
        return
    reported = {name.lower(): value for name, value in headers.items()}
    text = content.decode()
    title = HTTPStatus(status).phrase
    if reported["content-type"] == "application/json":
        [error] = json.loads(content)["errors"]
        assert (error["status"], error["title"]) == (status, title)
        assert error["request_id"] == reported["x-openstack-request-id"]
        assert isinstance(error["detail"], str)
        version = reported.get("openstack-api-version")
        if version is not None:
            assert ("code" in error) == (int(version.rpartition(".")[2]) >= 23)
            assert error.get("code", "placement.").startswith("placement.")
        text = error["detail"]
    else:
        assert reported["content-type"] in ("text/html; charset=UTF-8", "text/plain; charset=UTF-8")
        assert title in text
    assert not SQL.search(text), text
