"""The service with a real Keystone: the tokens that it accepts, and its responses while Keystone is unreachable
(docs: api-authentication, policy).
"""

from __future__ import annotations

import functools
import gc
import http.client
import json
import logging
import re
import shutil
import socket
import time
import warnings
from contextlib import closing, suppress

import keystoneauth1.identity
import keystoneauth1.session
import pytest
from placement_client import Client, Keystone, NoToken

from placement.cmd import manage as manage_command
from placement.cmd import status as status_command
from placement.http.endpoint import endpoint
from placement.http.environ import CONTEXT
from placement.http.response import ok
from placement.middleware import keystone_check
from tests import asynchronous, children, closed, identity, made, owner_rules, permissions, running, servers, web
from tests.clock import Clock
from tests.docs.run_by import blocks_of
from tests.made import opened

pytestmark = [
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("keystone"),
]

PEOPLE = {
    "nova": {"service": ["service"]},
    "manager": {"mine": ["manager"]},
    "member": {"mine": ["member"]},
    "reader": {"mine": ["reader"], "yours": ["reader"]},
    "operator": {"mine": ["admin"], "system": ["admin"], "domain": ["admin"]},
    "robot": {"system": ["service"]},
}


@pytest.fixture(scope="module")
def keystone():
    with identity.keystone() as started:
        for name in ("mine", "yours"):
            started.create_project(name)
        for name, roles in PEOPLE.items():
            started.create_user(name, roles)
        yield started


@pytest.fixture(scope="module")
def access(keystone):
    """Return the options of a service whose user may validate tokens."""
    return {
        "auth_type": "password",
        "auth_url": keystone.url,
        "www_authenticate_uri": keystone.url,
        "username": "placement",
        "password": identity.PASSWORD,
        "user_domain_id": "default",
        "project_name": "service",
        "project_domain_id": "default",
        "http_request_max_retries": 0,
    }


@pytest.fixture(scope="module")
def service(backend, keystone, access):
    """The service, registered in the catalog."""
    url = backend.create_database()
    # So that cached tokens do not leave the cache while a test on a busy machine waits for another to expire.
    access = access | {"token_cache_time": 3600}
    options = {"api": {"auth_strategy": "keystone"}, "baremetal": {"enabled": True}, "keystone_authtoken": access}
    with running.embedded(url, options) as started:
        keystone.create_service("placement", started.url)
        keystone.create_service("baremetal", f"{started.url}/baremetal")
        yield started
    backend.drop_database(url)


def ask(service, token="", path="/resource_providers", **headers):
    """Return status, headers and body of the response."""
    request_headers = {"X-Auth-Token": token, "OpenStack-API-Version": "placement 1.39"}
    request_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)) as connection:
        connection.request("GET", path, headers={name: value for name, value in request_headers.items() if value})
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read() or "null")


def status(*arguments, **headers):
    return ask(*arguments, **headers)[0]


# --- rights ---


@pytest.mark.parametrize(
    ("user", "scope", "kind"),
    [
        ("operator", "mine", "admin"),
        ("nova", "service", "service"),
        ("manager", "mine", "reader"),
        ("member", "mine", "reader"),
        ("reader", "mine", "reader"),
        ("reader", "yours", "stranger"),
        ("reader", None, "stranger"),
        ("operator", "system", "system"),
        ("operator", "domain", "system"),
        ("robot", "system", "system"),
    ],
)
def test_each_token_has_the_rights_of_its_roles(service, keystone, user, scope, kind):
    headers = {"X-Auth-Token": keystone.token(user, scope)}
    with permissions.calling(service.port, headers, keystone.project_id("mine")) as caller:
        permissions.check(caller.send_all(), kind, legacy=False, scope="system" if kind == "system" else "project")


def test_identity_headers_of_a_client_are_ignored(service, keystone):
    claimed = {
        "X_Roles": "admin,service",
        "X_User_Id": "other",
        "X_Project_Id": keystone.project_id("mine"),
        "X_Identity_Status": "Confirmed",
        "X_Service_Roles": "service",
    }
    assert status(service, **claimed) == 401
    assert status(service, keystone.token("reader", "yours"), **claimed) == 403
    usages = f"/usages?project_id={keystone.project_id('mine')}"
    assert status(service, keystone.token("reader", "yours"), usages, **claimed) == 403
    assert status(service, keystone.token("operator", "mine"), OpenStack_System_Scope="all") == 200


# --- invalid tokens ---


def is_401(answer, keystone):
    """Whether a response is the 401 of the middleware."""
    code, headers, body = answer
    assert code == 401
    assert headers["WWW-Authenticate"] == f'Keystone uri="{keystone.url}"'
    assert headers["x-openstack-request-id"].startswith("req-")
    assert "openstack-api-version" not in headers
    [error] = body["errors"]
    assert (error["status"], error["title"], error["code"]) == (401, "Unauthorized", "placement.undefined_code")
    assert error["request_id"] == headers["x-openstack-request-id"]
    return True


def test_missing_and_invalid_tokens_are_refused(service, keystone):
    assert is_401(ask(service), keystone)
    assert is_401(ask(service, "admin"), keystone)
    assert is_401(ask(service, "gAAAAAB" + "x" * 170), keystone)
    assert is_401(ask(service, path="/nope"), keystone)
    assert status(service, path="/") == 200
    assert status(service, "admin", path="/") == 200


def test_an_expired_token_is_refused(service, keystone):
    token = keystone.token("operator", "mine")
    assert status(service, keystone.with_expiry(token, 600)) == 200
    assert is_401(ask(service, keystone.with_expiry(token, -60)), keystone)


def test_a_revoked_token_is_refused(service, keystone):
    token = keystone.token("operator", "mine")
    keystone.revoke(token)
    assert is_401(ask(service, token), keystone)


# --- services that ask on behalf of a user ---


def test_a_service_may_continue_with_an_expired_token(service, keystone):
    """nova does so at the end of a long live migration."""
    expired = keystone.with_expiry(keystone.token("operator", "mine"), -60)
    assert status(service, expired, X_Service_Token=keystone.token("nova", "service")) == 200
    assert is_401(ask(service, expired, X_Service_Token=keystone.token("reader", "mine")), keystone)


def test_an_invalid_service_token_invalidates_a_valid_token(service, keystone):
    token = keystone.token("operator", "mine")
    assert is_401(ask(service, token, X_Service_Token="unknown"), keystone)


def test_the_service_token_adds_neither_roles_nor_scope(service, keystone):
    nova_token = keystone.token("nova", "service")
    assert status(service, keystone.token("reader", "mine"), X_Service_Token=nova_token) == 403
    code, _, body = ask(service, keystone.token("operator", "system"), X_Service_Token=nova_token)
    assert code == 403
    assert body["errors"][0]["detail"].strip().endswith("placement:resource_providers:list")
    system_token = keystone.token("robot", "system")
    assert status(service, keystone.token("operator", "mine"), X_Service_Token=system_token) == 200


def test_an_application_credential_permits_only_the_requests_of_its_rules(service, keystone):
    rules = [{"service": "placement", "method": "GET", "path": "/resource_providers"}]
    token = keystone.restrict("operator", "mine", rules)
    assert status(service, token) == 200
    assert is_401(ask(service, token, "/traits"), keystone)


# --- the Bare Metal API ---


def ask_baremetal(service, token, *request):
    """Return status and document of the response to a request of the Bare Metal API."""
    with owner_rules.calling(service.port, {"X-Auth-Token": token} if token else {}) as caller:
        return caller.ask(*request)


def test_an_allocation_belongs_to_the_project_of_the_token(service, keystone):
    member, reader = keystone.token("member", "mine"), keystone.token("reader", "mine")
    code, allocation = ask_baremetal(service, member, "POST", "/v1/allocations", {"resource_class": "none"})
    path = f"/v1/allocations/{allocation['uuid']}"
    assert (code, allocation["owner"]) == (201, keystone.project_id("mine"))
    assert ask_baremetal(service, reader, "GET", path)[0] == 200
    assert ask_baremetal(service, reader, "DELETE", path)[0] == 403
    assert ask_baremetal(service, keystone.token("reader", "yours"), "GET", path)[0] == 404
    assert ask_baremetal(service, keystone.token("reader"), "GET", path)[0] == 403
    assert ask_baremetal(service, keystone.token("operator", "domain"), "GET", "/v1/allocations")[0] == 403
    assert ask_baremetal(service, keystone.token("robot", "system"), "GET", path)[0] == 200
    assert ask_baremetal(service, keystone.token("operator", "system"), "DELETE", path)[0] == 204


def test_the_version_documents_of_the_bare_metal_api_need_no_token(service):
    for path in ("", "/", "/v1", "/v1/"):
        assert ask_baremetal(service, "", "GET", path)[0] == 200
    assert ask_baremetal(service, "", "GET", "/v1/nodes")[0] == 401


def test_an_access_rule_names_the_service_type_of_its_api(service, keystone):
    paths = ("/baremetal/v1/drivers", "/resource_providers")
    for kind, codes in (("baremetal", [200, 401]), ("placement", [401, 200])):
        rules = [{"service": kind, "method": "GET", "path": path} for path in paths]
        token = keystone.restrict("operator", "mine", rules)
        assert [status(service, token, path) for path in paths] == codes


# --- Keystone is unreachable ---


def is_unavailable(answer):
    """Whether a response is a 503 in the form of other errors."""
    code, headers, body = answer
    assert code == 503
    assert headers["Content-Type"] == "application/json"
    [error] = body["errors"]
    assert error["request_id"] == headers["x-openstack-request-id"]
    assert (error["status"], error["code"]) == (503, "placement.undefined_code")
    assert "The Identity service cannot validate tokens at the moment." in error["detail"]
    return True


def token_about_to_expire(service, keystone):
    """Return a token that was valid when the service checked it, and expires soon."""
    token = keystone.token("operator", "mine")
    for seconds in (4, 40, 400):  # the last for a busy machine
        short_token = keystone.with_expiry(token, seconds)
        if status(service, short_token) == 200:
            return short_token
    raise AssertionError("each token expires before the service has checked it")


def test_known_tokens_are_valid_while_keystone_is_unreachable(service, keystone):
    known_token, unknown_token = keystone.token("operator", "mine"), keystone.token("nova", "service")
    assert status(service, known_token) == 200
    short_token = token_about_to_expire(service, keystone)
    keystone.stop()
    try:
        while (code := status(service, short_token)) == 200:
            time.sleep(0.5)
        assert code == 401, "a cached token is refused once it expires; 503 would mean that it has left the cache"
        assert status(service, known_token) == 200
        assert is_unavailable(ask(service, unknown_token))
        assert is_unavailable(ask(service, known_token, X_Service_Token=unknown_token))
        assert is_401(ask(service), keystone)
        assert status(service, path="/") == 200
    finally:
        keystone.start()
    assert status(service, unknown_token) == 200


# --- a service in this process, with its own options ---


@endpoint()
def whoami(req):
    return ok(req.environ[CONTEXT].roles)


@pytest.fixture
def configure(access, tmp_path):
    """Return a function like `ask`, for a service with additional options, or with a configuration file."""

    def begin(database=web.NO_DATABASE, text="", **settings):
        lines = [f"{name} = {value}\n" for name, value in (access | settings).items()]
        path = tmp_path / "placement.conf"
        path.write_text(text or "[keystone_authtoken]\n" + "".join(lines))
        table = {"/": {"GET": whoami}, "/whoami": {"GET": whoami}}
        app = web.service(table, database, config_files=[str(path)], api__auth_strategy="keystone")

        def call(token="", path="/whoami", **headers):
            request_headers = {"X-Auth-Token": token, "OpenStack-API-Version": "placement 1.39", **headers}
            answer = web.ask(
                app, "GET", path, {name.replace("_", "-"): value for name, value in request_headers.items()}
            )
            return answer.status_int, answer.headers, answer.json

        return call

    yield begin
    # The clients of Keystone and memcached leave their sockets to the garbage collector, which may run in any test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.parametrize(
    "settings",
    [
        {"password": "wrong"},
        {"region_name": "elsewhere"},
        {"auth_url": f"{closed.URL}/v3", "www_authenticate_uri": ""},
    ],
    ids=["wrong password", "not in the catalog", "no server"],
)
def test_a_service_that_cannot_validate_tokens_returns_503_and_logs_the_reason(
    backend, configure, keystone, caplog, settings
):
    call_service = configure(**settings)
    assert is_unavailable(call_service(keystone.token("operator", "mine")))
    assert call_service(path="/")[0] == 200
    assert "No token can be validated" in caplog.text
    assert "Traceback" not in caplog.text


REFUSED = "The Identity service refuses the service's own user 'placement'."
WRONG_ACCESS = [
    ({"password": "wrong"}, REFUSED, 2),
    ({"region_name": "elsewhere"}, "The Identity service is not in its own catalog.", 2),
    ({"auth_url": f"{closed.URL}/v3"}, "The Identity service does not respond.", 1),
]


@pytest.mark.parametrize(("settings", "sentence", "_"), WRONG_ACCESS)
def test_the_start_and_a_detailed_health_check_report_a_failing_identity_service_before_any_client(
    backend, database, configure, keystone, caplog, settings, sentence, _
):
    call_service = configure(database, **settings)
    [error] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert error.startswith(f"No token can be validated: [keystone_authtoken]: {sentence} (")
    assert identity.PASSWORD not in error
    code, _, body = call_service(path="/healthcheck?detailed", Accept="application/json")
    assert code == 503
    assert sentence in body["reasons"]


def test_a_working_identity_service_is_not_reported(backend, database, configure, keystone, caplog):
    call_service = configure(database)
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    _, _, body = call_service(path="/healthcheck?detailed", Accept="application/json")
    assert body["reasons"][1:] == ["OK"]
    assert len(call_service(path="/healthcheck", Accept="application/json")[2]["reasons"]) == 1


def test_many_health_checks_ask_the_identity_service_once(backend, database, configure, keystone, caplog, monkeypatch):
    monkeypatch.setattr(keystone_check, "time", Clock(1000.0))
    call_service = configure(database, password="wrong")
    with caplog.at_level(logging.DEBUG, logger="keystoneauth"):
        for _ in range(5):
            assert call_service(path="/healthcheck?detailed", Accept="application/json")[0] == 503
    assert caplog.text.count("Making authentication request to") == 1


@pytest.mark.parametrize(("settings", "sentence", "code"), [({}, "", 0), *WRONG_ACCESS])
def test_the_upgrade_check_asks_the_identity_service(
    backend, access, keystone, database_url, tmp_path, in_process, settings, sentence, code
):
    with opened(database_url) as database:
        made.sync(database.engine)
    lines = [f"{name} = {value}\n" for name, value in (access | settings).items()]
    path = tmp_path / "placement.conf"
    path.write_text(f"[placement_database]\nconnection = {database_url}\n[keystone_authtoken]\n{''.join(lines)}")
    ran = in_process(status_command, "--config-file", str(path), "upgrade", "check", "--json")
    [result] = [check for check in json.loads(ran.out)["checks"] if check["check"] == "Identity Service"]
    assert (ran.code, result["result"]) == (code, ["Success", "Warning", "Failure"][code])
    assert sentence in (result["details"] or "")
    assert identity.PASSWORD not in ran.out + ran.err


@pytest.mark.parametrize(("settings", "sentence", "code"), [({}, "", 0), *WRONG_ACCESS])
def test_the_doctor_asks_the_identity_service(
    backend, access, keystone, database_url, tmp_path, in_process, settings, sentence, code
):
    lines = [f"{name} = {value}\n" for name, value in (access | settings).items()]
    path = tmp_path / "placement.conf"
    path.write_text(f"[placement_database]\nconnection = {database_url}\n[keystone_authtoken]\n{''.join(lines)}")
    ran = in_process(manage_command, "--config-file", str(path), "doctor", "--check", "keystone", "--json")
    findings = json.loads(ran.out)["findings"]
    assert (ran.code, [finding["severity"] for finding in findings]) == ((0, []), (3, ["warning"]), (4, ["error"]))[
        code
    ]
    assert all(sentence in finding["what"] for finding in findings)
    assert identity.PASSWORD not in ran.out + ran.err


@pytest.fixture
def memcached(tmp_path):
    """Return the address of a memcached for this test."""
    program = shutil.which("memcached")
    if program is None:
        raise servers.Missing("memcached is not installed: `make servers` installs it")
    port = children.free_port()
    argv = [program, "-l", "127.0.0.1", "-p", str(port), "-u", "nobody"]
    server = children.Child(argv, tmp_path / "memcached.log")

    def answers():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    server.wait_until(answers)
    yield f"127.0.0.1:{port}"
    server.stop()


# The client of memcached tests for eventlet, which Keystone installs.
@pytest.mark.filterwarnings(r"ignore:\s*Eventlet is deprecated")
@pytest.mark.parametrize("settings", [{}, {"memcache_security_strategy": "ENCRYPT", "memcache_secret_key": "x"}])
def test_processes_share_validated_tokens(backend, configure, keystone, memcached, settings):
    token = keystone.token("operator", "mine")
    call_service, wrong_settings = configure(memcached_servers=memcached, **settings), {"password": "wrong", **settings}
    assert is_unavailable(configure(memcached_servers=memcached, **wrong_settings)(token))
    assert call_service(token)[0] == 200
    assert configure(memcached_servers=memcached, **wrong_settings)(token)[0] == 200


@pytest.mark.filterwarnings(r"ignore:\s*Eventlet is deprecated", "ignore::ResourceWarning")
def test_the_service_works_without_memcached(backend, configure, keystone):
    call_service = configure(memcached_servers=f"127.0.0.1:{children.free_port()}")
    token = keystone.token("operator", "mine")
    assert [call_service(token)[0] for _ in range(2)] == [200, 200]


def test_the_log_contains_no_secret(backend, configure, keystone, caplog):
    """All loggers write at DEBUG."""
    valid, other, expired = (keystone.token(user, "mine") for user in ("operator", "member", "reader"))
    expired = keystone.with_expiry(expired, -60)
    with caplog.at_level(logging.DEBUG):
        call_service = configure(username="operator", project_name="mine")  # an administrator may validate tokens too
        assert [call_service(valid)[0], call_service(expired)[0], call_service(valid, X_Service_Token=other)[0]] == [
            200,
            401,
            401,
        ]
    assert "/v3/auth/tokens" in caplog.text
    for secret in (identity.PASSWORD, valid, expired, other):
        assert secret not in caplog.text


# --- whole clients ---


#: Commands of the pages for records that exist in this Keystone: a user, a project, a service.
EXISTING = re.compile(
    r"(user create .* |--user |project create .* |--project |service create --name |endpoint create --region \S+ )"
    r"(?:placement|service)(?= |$)",
    re.MULTILINE,
)


@pytest.mark.filterwarnings(r"ignore:\s*Eventlet is deprecated", "ignore::ResourceWarning")
def test_the_commands_and_configurations_of_the_pages_work(service, keystone, configure, shell):
    shell.variables |= {
        "OS_AUTH_URL": keystone.url,
        "OS_USERNAME": "admin",
        "OS_PASSWORD": identity.PASSWORD,
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }
    replacements = {
        "https://placement.example.org": service.url,
        "http://placement.internal.example.org:8778": service.url,
        "RegionOne": identity.REGION,
        "--password-prompt": f"--password {identity.PASSWORD}",
    }
    for page in ("docs/keystone.rst", "docs/extensions/baremetal.rst"):
        for block in blocks_of(__file__, page, "shell"):
            shell.run(EXISTING.sub(r"\1documented", block.text), replacements)
    access = {
        "https://identity.example.org": keystone.url,
        "https://identity.internal.example.org": keystone.url,
        "RegionOne": identity.REGION,
        "username = placement": "username = documented",
        "password = secret": f"password = {identity.PASSWORD}",
        "project_name = service": "project_name = documented",
        "192.0.2.1:11211,192.0.2.2:11211": f"127.0.0.1:{children.free_port()}",
    }
    for page in ("docs/keystone.rst", "docs/configuration.rst"):
        (block,) = blocks_of(__file__, page, "ini")
        text = functools.reduce(lambda text, replacement: text.replace(*replacement), access.items(), block.text)
        assert configure(text=text)(keystone.token("operator", "mine"))[0] == 200


def test_the_openstack_command_authenticates_with_a_password(service, keystone, openstack_command):
    def openstack(user, project, command):
        environment = {
            "OS_AUTH_URL": keystone.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": identity.PASSWORD,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_PLACEMENT_API_VERSION": "1.39",
        }
        return openstack_command(command.split(), **environment)

    created = openstack("operator", "mine", "resource provider create host1 -f json")
    assert created.returncode == 0, created.stderr
    assert json.loads(created.stdout)["name"] == "host1"
    host = json.loads(created.stdout)["uuid"]
    usage = openstack("reader", "mine", f"resource usage show {keystone.project_id('mine')} -f json")
    assert (usage.returncode, json.loads(usage.stdout)) == (0, []), usage.stderr
    denied = openstack("reader", "mine", "resource provider list")
    rule = "placement:resource_providers:list"
    assert (denied.returncode, denied.stdout) == (1, "")
    assert denied.stderr.strip() == f"Policy does not allow {rule} to be performed. (HTTP 403)"
    stocked = openstack("operator", "mine", f"resource provider inventory set {host} --resource VCPU=4")
    assert stocked.returncode == 0, stocked.stderr
    claimed = openstack("operator", "mine", "allocation claim resources=VCPU:1 -f json")
    assert claimed.returncode == 0, claimed.stderr
    # The owner is the authenticated user.
    listed = openstack(
        "operator", "mine", f"resource provider consumers --project {keystone.project_id('mine')} -f json"
    )
    assert [row["consumer"] for row in json.loads(listed.stdout)] == [json.loads(claimed.stdout)[0]["consumer"]]


def session_of(keystone, user, project):
    """Return a session of keystoneauth."""
    password = keystoneauth1.identity.Password(
        keystone.url,
        username=user,
        password=identity.PASSWORD,
        user_domain_id="default",
        project_name=project,
        project_domain_id="default",
    )
    return keystoneauth1.session.Session(password)


def test_the_client_authenticates_with_a_session(service, keystone):
    [block] = blocks_of(__file__, "docs/client.rst", "python")
    names, replacements = {}, {"https://identity.example.org/v3": keystone.url, "secret": identity.PASSWORD}
    text = functools.reduce(lambda text, replacement: text.replace(*replacement), replacements.items(), block.text)
    exec(text, names)
    assert names["providers"] == ask(service, keystone.token("operator", "mine"))[2]["resource_providers"]
    names["client"].close()


@pytest.mark.parametrize("connect", [Client, asynchronous.blocking], ids=["sync", "async"])
def test_a_session_replaces_a_token_that_is_not_accepted(service, keystone, connect):
    session = session_of(keystone, "operator", "mine")
    keystone.revoke(session.get_token())
    with connect(auth=Keystone(session)) as client:
        assert client.request("GET", "/resource_providers") == ask(service, keystone.token("operator", "mine"))[2]


@pytest.mark.parametrize("connect", [Client, asynchronous.blocking], ids=["sync", "async"])
def test_a_session_without_a_token_is_reported(service, keystone, connect):
    with connect(auth=Keystone(session_of(keystone, "nobody", "mine"))) as client, pytest.raises(NoToken, match="401"):
        client.request("GET", "/resource_providers")
    elsewhere = Keystone(session_of(keystone, "operator", "mine"), region_name="elsewhere")
    with connect(auth=elsewhere) as client, pytest.raises(NoToken, match="elsewhere"):
        client.request("GET", "/resource_providers")
