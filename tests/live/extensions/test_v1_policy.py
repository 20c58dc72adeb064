"""Every route of the v1 API with every kind of caller, over HTTP (docs: v1-policy).

All are for administrators and services, except the doctor, which is for administrators.  An operator can let readers of
a project list its consumers.
"""

from __future__ import annotations

import http.client
import json

import pytest
from oslo_policy.policy import DocumentedRuleDefault

from placement.extensions.v1 import policy
from placement.extensions.v1.api import TABLE, V1
from tests import children, running, servers

pytestmark = [
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("v1-policy"),
]

MINE, YOURS = "mine", "yours"
ADMIN, MANAGER = "admin,manager,member,reader", "manager,member,reader"
#: Roles as Keystone assigns them, with implied roles, and the project.
CALLERS = {
    "admin": (ADMIN, MINE),
    "admin of another project": (ADMIN, YOURS),
    "service": ("service", YOURS),
    "manager": (MANAGER, MINE),
    "reader": ("reader", MINE),
    "reader of another project": (MANAGER, YOURS),
    "member who is no reader": ("member", MINE),
    "a role of no rule": ("Admins", MINE),
    "no role": ("", MINE),
}
PROVIDER = "5d2f2a3c-7d0b-4f3e-9d61-5f0f4c0b7a12"
#: Another provider, and a consumer owned by two projects, one after the other.
OTHER, MOVED = "5d2f2a3c-7d0b-4f3e-9d61-5f0f4c0b7a13", "5d2f2a3c-7d0b-4f3e-9d61-5f0f4c0b7a14"
#: The queries of a route; queries of consumers with the project whose readers an operator can allow.
CONSUMERS = {
    f"project={MINE}": MINE,
    f"project={MINE}&limit=1": MINE,
    f"project={YOURS}": YOURS,
    f"project={MINE}&project={YOURS}": YOURS,  # the last one counts
    "": None,
    "project=": None,
    f"user={MINE}": None,
    "unknown=1": None,
}
QUERIES = {"/capacity": ["resources=VCPU:1"], "/explain": ["resources=VCPU:1"], "/consumers": [*CONSUMERS]}
#: Queries that are refused even to permitted callers.
WRONG = {"project=", f"project={MINE}&project={YOURS}", "unknown=1"}
OPEN = V1.open_paths
#: The rule of each route with one.
RULES = {
    ("GET", "/capacity"): "placement:v1:capacity:show",
    ("GET", "/doctor"): "placement:v1:doctor",
    ("GET", "/explain"): "placement:v1:explain",
    ("GET", "/overview"): "placement:v1:overview:show",
    ("GET", "/providers/{provider}"): "placement:v1:providers:show",
    ("GET", "/consumers"): "placement:v1:consumers:list",
    ("GET", "/events"): "placement:v1:events:list",
    ("GET", "/history/{object}"): "placement:v1:history:show",
    ("GET", "/usage"): "placement:v1:usage:show",
    ("POST", "/claims"): "placement:v1:claims:create",
    ("DELETE", "/claims"): "placement:v1:claims:delete",
    ("GET", "/claims/{consumer}"): "placement:v1:claims:show",
    ("POST", "/claims/{consumer}/extend"): "placement:v1:claims:extend",
}
#: The roles permitted by each rule.
ALLOWED = {rule: {"admin", "service"} for rule in RULES.values()} | {"placement:v1:doctor": {"admin"}}
#: The status of a route without a body, or for a consumer without allocations, if it is not 200.
ANSWERED = {
    ("POST", "/claims"): 400,
    ("DELETE", "/claims"): 400,
    ("GET", "/claims/{consumer}"): 404,
    ("POST", "/claims/{consumer}/extend"): 400,
}
#: Requests that name a provider.
NAMING = (
    *("/v1/providers/%s", "/v1/overview?root=%s", "/v1/consumers?provider=%s"),
    *("/v1/history/%s", "/v1/events?provider=%s"),
    *("/v1/explain?resources=VCPU:1&in_tree=%s", "/v1/capacity?resources=VCPU:1&in_tree=%s"),
)
REQUESTS = [(method, path, query) for path in TABLE for method in TABLE[path] for query in QUERIES.get(path, [""])]


@pytest.fixture(scope="module")
def port(module_database_url):
    """The port of a service with a provider, and with noauth2, which accepts any roles."""
    with running.embedded(module_database_url) as service:
        body = json.dumps({"name": "host", "uuid": PROVIDER})
        status, _ = send(service.port, "POST", "/resource_providers", headers(ADMIN, MINE), body)
        assert status == 201
        yield service.port


@pytest.fixture(scope="module")
def open_port(module_database_url, port):
    """The port of a service on the same database that lets readers list their project's consumers and events."""
    file = children.run_directory() / "v1-policy.yaml"
    rules = ("placement:v1:consumers:list", "placement:v1:events:list")
    file.write_text("".join(f'"{rule}": "rule:admin_or_project_reader_or_service_api"\n' for rule in rules))
    with running.embedded(module_database_url, {"oslo_policy": {"policy_file": file}}) as service:
        yield service.port


def headers(roles, project, **other_headers):
    return {"X-Auth-Token": f"user:{project}", "X-Roles": roles, **other_headers}


def send(port, method, path, request_headers, body=None):
    """Return the status, and the message of a refusal."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} | request_headers)
        answer = connection.getresponse()
        content = answer.read().decode()
    finally:
        connection.close()
    if answer.status < 400:
        return answer.status, ""
    [error] = json.loads(content)["errors"]
    return answer.status, error["detail"].splitlines()[-1].strip()


def url(path, query):
    return f"/v1{path.format(provider='host', object='host', consumer=PROVIDER)}" + (f"?{query}" if query else "")


def permitted_status(method, path, query):
    """Return the status for a permitted caller."""
    return 400 if query in WRONG else ANSWERED.get((method, path), 200)


each_request = pytest.mark.parametrize(("method", "path", "query"), REQUESTS)


@each_request
@pytest.mark.parametrize("name", CALLERS)
def test_each_caller_gets_the_result_in_the_table_of_rules(port, name, method, path, query):
    roles, project = CALLERS[name]
    answer = send(port, method, url(path, query), headers(roles, project))
    rule = RULES.get((method, path))
    if rule is None or ALLOWED[rule] & {*roles.split(",")}:
        assert answer[0] == permitted_status(method, path, query), answer
    else:
        assert answer == (403, f"Policy does not allow {rule} to be performed.")


@pytest.mark.parametrize("path", NAMING)
def test_a_refused_caller_does_not_learn_whether_a_provider_exists(port, path):
    answers = {name: send(port, "GET", path % name, headers(MANAGER, MINE)) for name in ("host", PROVIDER, "nothing")}
    assert answers["host"][0] == 403
    assert answers["host"] == answers[PROVIDER] == answers["nothing"]
    existing, missing = (send(port, "GET", path % name, headers(ADMIN, MINE))[0] for name in ("host", "nothing"))
    assert (existing, missing) == (200, 404 if "?" not in path else 400)


@pytest.mark.parametrize("query", CONSUMERS)
@pytest.mark.parametrize("name", CALLERS)
def test_an_operator_can_let_readers_list_the_consumers_of_their_project(open_port, name, query):
    roles, project = CALLERS[name]
    allowed = {"admin", "service", *(["reader"] if project == CONSUMERS[query] else [])} & {*roles.split(",")}
    status, _ = send(open_port, "GET", url("/consumers", query), headers(roles, project))
    assert status == ((400 if query in WRONG else 200) if allowed else 403)


def test_a_reader_of_events_sees_nothing_of_the_project_that_owned_a_consumer_before(port, open_port):
    """Neither its ids, nor the allocations of its users; a caller with access to all projects sees everything."""
    move(port, MOVED, OTHER)

    def events(roles, project, **other_headers):
        return events_of_consumer(open_port, headers(roles, project, **other_headers), MOVED)

    [first, last] = events("reader", MINE)
    assert first["generation"] == [None, 2]
    assert first["changes"] == {
        "project": [None, MINE],
        "user": [None, "ann"],
        "allocations": {PROVIDER: {"VCPU": [None, 2]}},
    }
    assert first["request"].keys() >= {"request_id", "client", "route"}
    assert first["request"].keys().isdisjoint({"user", "project"})
    assert (last["generation"], last["changes"]["project"]) == ([2, None], [MINE, None])
    assert [event["changes"] for event in events("reader", MINE, Accept="text/event-stream")] == [
        first["changes"],
        last["changes"],
    ]
    [event_of_yours] = events("reader", YOURS)
    assert MINE not in json.dumps(event_of_yours["changes"])
    for all_projects in (ADMIN, "service"):
        [moved_event, _] = events(all_projects, MINE)
        assert moved_event["generation"] == [1, 2]
        assert moved_event["changes"] == {
            "project": [YOURS, MINE],
            "user": ["bob", "ann"],
            "allocations": {PROVIDER: {"VCPU": [1, 2]}, OTHER: {"VCPU": [3, None]}},
        }
        assert (moved_event["request"]["user"], moved_event["request"]["project"]) == ("bob", YOURS)


def move(port, consumer, spare):
    """Move a consumer from one project to another as bob, a user of the first, and then delete it as ann."""

    def send_as(method, path, body=None, token=f"bob:{YOURS}"):
        identity = {"X-Auth-Token": token, "X-Roles": ADMIN, "OpenStack-API-Version": "placement 1.39"}
        assert send(port, method, path, identity, body and json.dumps(body))[0] < 300

    send_as("POST", "/resource_providers", {"name": "spare", "uuid": spare})
    for uuid in (PROVIDER, spare):
        stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
        send_as("PUT", f"/resource_providers/{uuid}/inventories", stock)

    def claim(project, user, generation, **amounts):
        places = {uuid: {"resources": {"VCPU": amount}} for uuid, amount in amounts.items()}
        owner = {"project_id": project, "user_id": user, "consumer_type": "INSTANCE"}
        body = {"allocations": places, "consumer_generation": generation, **owner}
        send_as("PUT", f"/allocations/{consumer}", body)

    claim(YOURS, "bob", None, **{PROVIDER: 1, spare: 3})
    claim(MINE, "ann", 1, **{PROVIDER: 2})
    send_as("DELETE", f"/allocations/{consumer}", token=f"ann:{MINE}")


def events_of_consumer(port, request_headers, consumer):
    """Return the events of a consumer that the caller's project may see; only the first two of a stream."""
    _, project = request_headers["X-Auth-Token"].split(":")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", f"/v1/events?project={project}&consumer={consumer}", headers=request_headers)
        answer = connection.getresponse()
        assert answer.status == 200
        if "Accept" not in request_headers:
            return json.loads(answer.read())["events"]
        lines = [answer.readline() for _ in range(2 + 2 * 4)]
        return [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]
    finally:
        connection.close()


@each_request
def test_a_system_scoped_token_is_refused(port, method, path, query):
    request_headers = headers(ADMIN, MINE, **{"OpenStack-System-Scope": "all"})
    assert send(port, method, url(path, query), request_headers)[0] == (403 if (method, path) in RULES else 200)


@each_request
def test_a_request_without_a_token_has_administrator_rights_with_noauth2(port, method, path, query):
    """The same holds for keystoneauth's token "notused", but not for a page of another origin."""
    status = permitted_status(method, path, query)
    assert send(port, method, url(path, query), {})[0] == status
    assert send(port, method, url(path, query), {"X-Auth-Token": "notused"})[0] == status
    page = {"Origin": "https://example.net"}
    assert send(port, method, url(path, query), page)[0] == (200 if path in OPEN else 401)


def test_every_rule_belongs_to_a_route(backend):
    routes = {
        (endpoint.policy, method, V1.prefix + path)
        for path, methods in TABLE.items()
        for method, endpoint in methods.items()
        if path not in OPEN
    }
    documented = {
        (rule.name, operation["method"], operation["path"])
        for rule in policy.RULES
        if isinstance(rule, DocumentedRuleDefault)
        for operation in rule.operations
    }
    assert routes == documented
    assert routes == {(rule, method, V1.prefix + path) for (method, path), rule in RULES.items()}
    assert {"/", "/openapi.json", "/openapi-placement.json"} == OPEN
