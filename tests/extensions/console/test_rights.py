"""Every page with every kind of caller (docs: console): a page shows only data that the API returns to the caller.

The table is written from the documentation, not from the route table; a test compares the two.
"""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import quote

import bcrypt
import pytest

from placement.extensions.console.api import CONSOLE
from tests import servers, web
from tests.extensions.console import fleet
from tests.extensions.console.conftest import console
from tests.extensions.console.fleet import CONSUMER, GONE, GONE_CONSUMER, HOSTILE, send

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

OVERVIEW, PROVIDER = "placement:v1:overview:show", "placement:v1:providers:show"
CANDIDATES, CONSUMERS = "placement:allocation_candidates:list", "placement:v1:consumers:list"
CLAIM, INVENTORY = "placement:allocations:update", "placement:resource_providers:inventories:update"
CHOICE = "placement:v1:claims:create"
HELD, USAGE = "placement:v1:claims:show", "placement:v1:usage:show"
EVENTS, HISTORY, DOCTOR = "placement:v1:events:list", "placement:v1:history:show", "placement:v1:doctor"
#: The roles that pass a rule, if not all do.
ROLES = {DOCTOR: {"admin"}}
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Page(NamedTuple):
    """A request of a browser, and the rules for its caller, in the order of their checks."""

    method: str
    path: str
    route: str
    rules: tuple[str, ...]
    #: The fields of a POST; by default, the fields of two forms: of a candidate and of an inventory.
    form: bytes = b"claim=%7B%22allocations%22%3A%7B%7D%7D&resource_class=DISK_GB&total=1"


PAGES = [
    Page("GET", "/", "/", (OVERVIEW,)),
    Page("GET", "", "/", (OVERVIEW,)),
    Page("GET", "/?class=DISK_GB", "/", (OVERVIEW,)),
    Page("GET", "/hosts", "/hosts", (OVERVIEW,)),
    Page("GET", "/findings", "/findings", (DOCTOR,)),
    Page("GET", "/providers", "/providers", (OVERVIEW,)),
    Page("GET", "/providers?name=cn1", "/providers", (OVERVIEW,)),
    Page("GET", "/providers/cn1", "/providers/{ident}", (PROVIDER,)),
    Page("GET", "/providers/nothing", "/providers/{ident}", (PROVIDER,)),
    Page("POST", "/providers/pool", "/providers/{ident}", (PROVIDER, INVENTORY)),
    Page("GET", "/query", "/query", (CANDIDATES,)),
    Page("GET", "/query?resources=VCPU:1", "/query", (CANDIDATES,)),
    Page("GET", "/query?resources=VCPU:x", "/query", (CANDIDATES,)),
    Page("POST", "/query", "/query", (CANDIDATES, CLAIM)),
    Page("POST", "/query?resources=VCPU:1", "/query", (CANDIDATES, CHOICE), b"strategy=pack&spread_over=&count=1"),
    Page("GET", "/query/form", "/query/form", (CANDIDATES,)),
    Page("GET", "/suggestions?of=classes&part=V", "/suggestions", (OVERVIEW,)),
    Page("GET", "/consumers", "/consumers", (CONSUMERS,)),
    Page("GET", "/consumers?project=blue", "/consumers", (CONSUMERS,)),
    Page("GET", "/consumers?project=red", "/consumers", (CONSUMERS,)),
    Page("GET", f"/consumers/{CONSUMER}", "/consumers/{consumer}", (HELD,)),
    Page("GET", "/consumers/nobody", "/consumers/{consumer}", (HELD,)),
    Page("GET", "/usage", "/usage", (USAGE,)),
    Page("GET", "/usage?period=week&class=VCPU", "/usage", (USAGE,)),
    Page("GET", "/events", "/events", (EVENTS,)),
    Page("GET", "/events?kind=nothing", "/events", (EVENTS,)),
    Page("GET", "/events/rows?kind=consumer", "/events/rows", (EVENTS,)),
    Page("GET", "/doctor", "/doctor", (DOCTOR,)),
    Page("GET", "/api", "/api", ()),
    Page("GET", "/api?of=placement", "/api", ()),
    Page("GET", "/assets/console.js", "/assets/{name}", ()),
]
#: The status for a caller with the rights, if it is not 200.
STATUSES = {
    "/providers/nothing": 404,
    "/consumers/nobody": 404,
    "/events?kind=nothing": 400,
    "/query?resources=VCPU:x": 400,
}

ADMIN, MANAGER = "admin,manager,member,reader", "manager,member,reader"
#: Roles of Keystone with the roles that they imply, and the project.
CALLERS = {
    "admin": (ADMIN, "blue"),
    "admin of another project": (ADMIN, "red"),
    "service": ("service", "red"),
    "manager": (MANAGER, "blue"),
    "reader": ("reader", "blue"),
    "reader of another project": ("reader", "red"),
    "member who is no reader": ("member", "blue"),
    "a role of no rule": ("Admins", "blue"),
    "no role": ("", "blue"),
}
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.method} {page.path}")


def ask(app, page, headers):
    """Send the request of a page; return the response."""
    body = None if page.method == "GET" else page.form
    return web.ask(app, page.method, f"/console{page.path}", {**FORM, **headers} if body else headers, body)


def check_hidden(reply, uuids):
    """Check that a response shows nothing of the cloud."""
    for secret in (*uuids.values(), CONSUMER, HOSTILE, "cn1-numa0"):
        assert secret not in reply.text


def test_every_route_is_in_the_table(backend):
    assert {(page.method, page.route) for page in PAGES} == {
        (method, path) for path, methods in CONSOLE.routes.items() for method in methods
    }


@EVERY_PAGE
@pytest.mark.parametrize("name", CALLERS)
def test_each_caller_sees_the_pages_that_the_table_permits(app, uuids, page, name):
    roles, project = CALLERS[name]
    reply = ask(app, page, {"x-auth-token": f"caller:{project}", "x-roles": roles})
    if all(ROLES.get(rule, {"admin", "service"}) & {*roles.split(",")} for rule in page.rules):
        assert reply.status_int == STATUSES.get(page.path, 200)
    else:
        assert reply.status_int == 403
        assert f"Policy does not allow {page.rules[0]} to be performed." in reply.text
        check_hidden(reply, uuids)


@EVERY_PAGE
def test_a_token_of_the_system_is_refused(app, uuids, page):
    headers = {"x-auth-token": "caller:blue", "x-roles": ADMIN, "openstack-system-scope": "all"}
    reply = ask(app, page, headers)
    assert reply.status_int == (403 if page.rules else 200)
    if page.rules:
        check_hidden(reply, uuids)


@pytest.fixture
def granting(module_database_url, tmp_path):
    """Return a function that starts a service whose readers pass only the given rules."""

    def start(*rules):
        path = tmp_path / f"{len(rules)}.yaml"
        path.write_text("".join(f'"{rule}": "role:reader"\n' for rule in rules))
        return console(module_database_url, oslo_policy__policy_file=str(path))

    return start


@pytest.mark.parametrize("rules", sorted({page.rules for page in PAGES if page.rules}))
def test_a_page_needs_exactly_the_rules_of_the_table(granting, uuids, rules):
    reader = {"x-auth-token": "caller:blue", "x-roles": "reader"}
    pages = [page for page in PAGES if page.rules == rules]
    app = granting(*rules)
    for page in pages:
        assert ask(app, page, reader).status_int == STATUSES.get(page.path, 200), page
    for missing in rules:
        app = granting("placement:usages", *({*rules} - {missing}))
        for page in pages:
            refused = ask(app, page, reader)
            assert refused.status_int == 403, page
            assert missing in refused.text
            check_hidden(refused, uuids)


def test_a_caller_who_may_only_search_sees_no_count_explanation_or_button(granting, uuids):
    app = granting(CANDIDATES)
    reader = {"x-auth-token": "caller:blue", "x-roles": "reader"}
    for headers, permitted in ((reader, False), (reader | {"x-roles": "admin,reader"}, True)):
        text = web.ask(app, "GET", "/console/query?resources=VCPU:1", headers).text
        empty = web.ask(app, "GET", "/console/query?resources=VCPU:4000", headers).text
        assert '<li class="candidate">' in text
        assert ("It fits" in text, "Try this claim" in text, "Rule by rule" in empty) == (permitted,) * 3
        assert ("Let the service choose" in text) is permitted
        assert ("The obstacle is <code>" in empty) is not permitted


@pytest.mark.parametrize(
    ("path", "rule", "hidden"),
    [
        ("/providers/pool", PROVIDER, False),
        (f"/providers/{quote(GONE, safe='')}", PROVIDER, True),
        (f"/consumers/{CONSUMER}", HELD, False),
        (f"/consumers/{GONE_CONSUMER}", HELD, True),
    ],
)
def test_the_history_of_an_object_requires_its_own_rule(granting, uuids, path, rule, hidden):
    reader = {"x-auth-token": "caller:blue", "x-roles": "reader"}
    without = web.ask(granting(rule), "GET", f"/console{path}", reader)
    assert without.status_int == (404 if hidden else 200)
    assert "PUT /allocations" not in without.text
    reply = web.ask(granting(rule, HISTORY), "GET", f"/console{path}", reader)
    assert reply.status_int == 200
    assert ('<h2 id="history">' in reply.text, "by admin" in reply.text) == (True, True)


#: A text in each part of the overview that has its own rule.
PARTS = {USAGE: 'class="spark"', EVENTS: 'id="changed"', CONSUMERS: "lease expires within the hour"}


def test_each_part_of_the_overview_needs_its_own_rule(database_url, tmp_path):
    """The test has its own database, with a lease that expires soon."""
    administered = console(database_url)
    fleet.fill(administered)
    fleet.sample(database_url, fleet.present_hour())
    fleet.lease(administered, 1800)
    reader = {"x-auth-token": "caller:blue", "x-roles": "reader"}
    for number, rules in enumerate([(), *((rule,) for rule in PARTS), (*PARTS,)]):
        path = tmp_path / f"{number}.yaml"
        path.write_text("".join(f'"{rule}": "role:reader"\n' for rule in (OVERVIEW, *rules)))
        app = console(database_url, oslo_policy__policy_file=str(path))
        reply = web.ask(app, "GET", "/console/", reader)
        assert reply.status_int == 200
        assert {rule for rule, part in PARTS.items() if part in reply.text} == {*rules}


def test_an_overview_shows_no_events_or_leases_of_other_projects(module_database_url, tmp_path, uuids):
    """The policy lets readers see the events and consumers of their own project."""
    path = tmp_path / "policy.yaml"
    rule = "rule:admin_or_project_reader_or_service_api"
    path.write_text(f'"{OVERVIEW}": "role:reader"\n"{EVENTS}": "{rule}"\n"{CONSUMERS}": "{rule}"\n')
    app = console(module_database_url, oslo_policy__policy_file=str(path))
    text = web.ask(app, "GET", "/console/", {"x-auth-token": "joe:red", "x-roles": "reader"})
    assert (text.status_int, "Latest changes" in text.text) == (200, False)
    text = web.ask(app, "GET", "/console/", {"x-auth-token": "joe:red", "x-roles": "admin,reader"})
    assert "Latest changes" in text.text


def test_a_policy_may_let_readers_see_only_the_events_of_their_own_project(module_database_url, tmp_path, uuids):
    path = tmp_path / "policy.yaml"
    path.write_text(f'"{EVENTS}": "rule:admin_or_project_reader_or_service_api"\n')
    app = console(module_database_url, oslo_policy__policy_file=str(path))
    reader = {"x-auth-token": "caller:blue", "x-roles": "reader"}
    statuses = {}
    for query in ("project=blue", "project=+blue+", "project=red", "project=", "", "kind=consumer"):
        for page in ("/events", "/events/rows"):
            if query == "project=red" and page == "/events/rows":
                continue
            statuses[page, query] = web.ask(app, "GET", f"/console{page}?{query}", reader).status_int
    assert {key for key, status in statuses.items() if status == 200} == {
        (page, query) for page in ("/events", "/events/rows") for query in ("project=blue", "project=+blue+")
    }
    assert {*statuses.values()} == {200, 403}
    text = web.ask(app, "GET", "/console/events?project=blue", reader).text
    assert CONSUMER in text
    assert "Aggregates added" not in text
    # A blank value is not a project, and a missing value is not the project named None.
    for token, query, status in (
        ("caller:blue", "project=blue&project=", 200),
        ("caller:blue", "project=red&project=", 403),
        ("caller:None", "project=red&project=", 403),
        ("caller:None", "", 403),
    ):
        identity = {"x-auth-token": token, "x-roles": "reader"}
        assert web.ask(app, "GET", f"/console/events?{query}", identity).status_int == status


def test_a_reader_does_not_see_events_of_a_consumer_in_another_project(app, module_database_url, tmp_path, uuids):
    consumer = "0b1c6a2e-3d7f-4f0c-8a62-51f0c0d8a003"
    for project, user, generation in (("orange", "bob", None), ("violet", "eve", 1)):
        owner = {"project_id": project, "user_id": user, "consumer_type": "INSTANCE", "consumer_generation": generation}
        body = {"allocations": {uuids["pool"]: {"resources": {"DISK_GB": 5}}}, **owner}
        send(app, "PUT", f"/allocations/{consumer}", body)
    path = tmp_path / "policy.yaml"
    path.write_text(f'"{EVENTS}": "rule:admin_or_project_reader_or_service_api"\n')
    restricted = console(module_database_url, oslo_policy__policy_file=str(path))
    reader = {"x-auth-token": "caller:violet", "x-roles": "reader"}
    for page in ("/events", "/events/rows"):
        texts = {
            roles: web.ask(restricted, "GET", f"/console{page}?project=violet", reader | {"x-roles": roles}).text
            for roles in ("reader", "admin")
        }
        assert all(consumer in text and "eve" in text for text in texts.values())
        assert [word in texts["admin"] for word in ("orange", "bob")] == [True, True]
        assert [word in texts["reader"] for word in ("orange", "bob")] == [False, False]


@pytest.fixture(scope="module")
def by_password(module_database_url, tmp_path_factory):
    """The application with http_basic and a password for ann."""
    file = tmp_path_factory.mktemp("rights") / "passwords"
    file.write_text(f"ann:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    options = {"api__auth_strategy": "http_basic", "oslo_middleware__http_basic_auth_user_file": str(file)}
    return console(module_database_url, **options)


@EVERY_PAGE
def test_without_a_password_only_open_pages_are_shown(by_password, uuids, page):
    reply = ask(by_password, page, {})
    assert reply.status_int == (401 if page.rules else STATUSES.get(page.path, 200))
    if page.rules:
        assert reply.headers["www-authenticate"].lower().startswith("basic")
        assert "a name and a password" in reply.text
        check_hidden(reply, uuids)


@pytest.mark.parametrize(("password", "status"), [("s3cret", 200), ("wrong", 401)])
def test_the_pages_accept_the_passwords_of_the_api(by_password, uuids, password, status):
    pair = base64.b64encode(f"ann:{password}".encode()).decode()
    for path in ("/console/providers", "/v1/overview"):
        assert web.ask(by_password, "GET", path, {"authorization": f"Basic {pair}"}).status_int == status
