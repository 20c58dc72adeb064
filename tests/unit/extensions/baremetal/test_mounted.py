"""The Bare Metal API below the shared layers: documents, headers, authentication, logs (docs: baremetal-paths)."""

from __future__ import annotations

import base64
import json
import logging

import bcrypt
import pytest

from placement import deploy, routes, signals
from placement.extensions.baremetal.api import BAREMETAL
from placement.extensions.v1.api import V1
from placement.http.environ import FAILURE, ROUTE
from tests import apis, closed, web

PREFIX = "x-openstack-ironic-api"
VERSION = f"{PREFIX}-version"
RANGE = {f"{PREFIX}-minimum-version": "1.1", f"{PREFIX}-maximum-version": "1.115"}
KEYSTONE = f"""\
[keystone_authtoken]
auth_type = password
auth_url = {closed.URL}/
username = u
password = p
"""
SPELLINGS = ["", "/", "/v1", "/v1/"]


@pytest.fixture(scope="module")
def app():
    return web.mount(*apis.ALL)


def version_headers(answer):
    return {name.lower(): value for name, value in answer.headers.items() if PREFIX in name.lower()}


def error_document(answer):
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.json["error_message"])


# --- documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/baremetal", "/baremetal/"])
@pytest.mark.parametrize("mount", ["", "/below/this"])
def test_the_root_shows_the_range_of_versions(app, path, mount):
    answer = web.ask(app, "GET", path, environ={"SCRIPT_NAME": mount})
    assert answer.status_int == 200
    assert answer.json.keys() == {"name", "description", "default_version", "versions"}
    [entry] = answer.json["versions"]
    assert entry == answer.json["default_version"]
    assert entry == {
        "id": "v1",
        "status": "CURRENT",
        "min_version": "1.1",
        "version": "1.115",
        "links": [{"href": f"http://localhost:80{mount}/baremetal/v1/", "rel": "self"}],
    }
    assert version_headers(answer) == {**RANGE, VERSION: "1.1"}


@pytest.mark.parametrize("path", ["/baremetal/v1", "/baremetal/v1/"])
@pytest.mark.parametrize("mount", ["", "/below/this"])
@pytest.mark.parametrize("version", ["1.51", "1.52", "latest"])
def test_v1_links_to_the_collections_of_the_version(app, path, mount, version):
    answer = web.ask(app, "GET", path, {VERSION: version}, environ={"SCRIPT_NAME": mount})
    base = f"http://localhost:80{mount}/baremetal"
    names = {"nodes", "drivers"} | ({"allocations"} if version != "1.51" else set())
    document = answer.json
    assert document.keys() == {"id", "links", "media_types", "version"} | names
    assert document["version"] == web.ask(app, "GET", "/baremetal", environ={"SCRIPT_NAME": mount}).json["versions"][0]
    assert document["links"][0] == {"href": f"{base}/v1/", "rel": "self"}
    assert document["links"][1].keys() == {"href", "rel", "type"}
    for name in names:
        assert document[name] == [
            {"href": f"{base}/v1/{name}/", "rel": "self"},
            {"href": f"{base}/{name}/", "rel": "bookmark"},
        ]


@pytest.mark.parametrize("path", ["/v1/drivers", "/v1/drivers/", "/drivers", "/drivers.json"])
def test_the_configured_drivers_are_listed(path):
    app = web.mount(*apis.ALL, conf=web.configuration(baremetal__drivers=["redfish", "ipmi", "ipmi"]))
    answer = web.ask(app, "GET", f"/baremetal{path}")
    assert answer.json == {"drivers": [{"name": "ipmi", "hosts": []}, {"name": "redfish", "hosts": []}]}
    answer = web.ask(app, "GET", "/baremetal/v1/drivers", {VERSION: "1.30"})
    assert answer.json["drivers"][0] == {"name": "ipmi", "hosts": [], "type": "dynamic"}


@pytest.mark.parametrize(
    ("query", "version", "expected"),
    [
        ("type=dynamic", "1.30", ["name", "hosts", "type"]),
        ("type=classic", "1.30", None),
        ("detail=True", "1.30", ["name", "hosts", "type"]),
        ("fields=name,type", "1.77", ["name", "type"]),
        ("fields=name&fields=hosts", "1.115", ["name", "hosts"]),
    ],
)
def test_drivers_are_filtered_by_type_and_their_fields_selected(app, query, version, expected):
    answer = web.ask(app, "GET", f"/baremetal/v1/drivers?{query}", {VERSION: version})
    assert answer.status_int == 200
    assert [[*driver] for driver in answer.json["drivers"][:1]] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("query", "version", "status"),
    [
        ("type=other", "1.115", 400),
        ("fields=properties", "1.115", 400),
        ("limit=1", "1.115", 400),
        ("type=classic&type=dynamic", "1.115", 400),
        ("type=dynamic", "1.29", 406),
        ("detail=True", "1.29", 406),
        ("fields=name", "1.76", 406),
    ],
)
def test_an_invalid_query_of_drivers_is_refused(app, query, version, status):
    answer = web.ask(app, "GET", f"/baremetal/v1/drivers?{query}", {VERSION: version})
    assert answer.status_int == status
    assert error_document(answer)["faultcode"] == "Client"


# --- headers, paths and methods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/html", "image/png"])
def test_responses_are_json_whatever_the_client_accepts(app, accept):
    for path, status in (("/baremetal/v1/drivers", 200), ("/baremetal/v1/nope", 404)):
        answer = web.ask(app, "GET", path, {"accept": accept})
        assert (answer.status_int, answer.headers["content-type"]) == (status, "application/json")


def test_a_response_has_no_headers_of_the_placement_api_and_no_cache_headers(app):
    answer = web.ask(app, "GET", "/baremetal/v1/drivers", {"openstack-api-version": "baremetal 1.60"})
    assert version_headers(answer) == {**RANGE, VERSION: "1.60"}
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    assert not {"openstack-api-version", "vary", "last-modified", "cache-control"} & {
        name.lower() for name in answer.headers
    }
    assert not version_headers(web.ask(app, "GET", "/", {VERSION: "1.60"}))


@pytest.mark.parametrize("path", ["/v1/ports", "/ports", "/v1/drivers/ipmi", "/v1/v1", "/v2", "/v1/healthcheck"])
def test_a_path_that_is_not_served_is_404(app, path):
    answer = web.ask(app, "GET", f"/baremetal{path}", {VERSION: "1.60"})
    assert answer.status_int == 404
    assert error_document(answer) == {"code": 404, "title": "Not Found", "description": ""}
    assert version_headers(answer) == {**RANGE, VERSION: "1.60"}


@pytest.mark.parametrize("path", ["", "/v1", "/v1/drivers"])
@pytest.mark.parametrize("method", ["HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
def test_a_method_that_is_not_served_is_405(app, path, method):
    answer = web.ask(app, method, f"/baremetal{path}", body=b"" if method == "HEAD" else b"{}")
    assert (answer.status_int, answer.headers["allow"]) == (405, "GET")
    if method == "HEAD":
        assert answer.body == b""
    else:
        assert error_document(answer)["code"] == 405


@pytest.mark.parametrize(("option", "status"), [("max_request_body_size", 413), ("max_query_length", 414)])
def test_shared_limits_are_reported_in_the_form_of_this_api(option, status):
    app = web.mount(*apis.ALL, conf=web.configuration(**{f"api__{option}": 5}))
    answer = web.ask(app, "GET", "/baremetal/v1/drivers?detail=true", body=b"123456")
    assert answer.status_int == status
    assert error_document(answer)["faultcode"] == "Client"
    assert f"[api]{option}" in error_document(answer)["faultstring"]


def test_the_content_type_of_a_body_is_not_checked(app):
    for headers in ({}, {"content-type": "application/octet-stream"}):
        assert web.ask(app, "GET", "/baremetal/v1/drivers", headers, b"x").status_int == 200


# --- the configuration -----------------------------------------------------------------------------------------------


def test_the_api_is_served_only_if_it_is_enabled():
    assert deploy.apis(web.configuration()) == (routes.PLACEMENT, V1)
    assert deploy.apis(web.configuration(baremetal__enabled=True)) == (routes.PLACEMENT, BAREMETAL, V1)
    answer = web.ask(web.mount(routes.PLACEMENT), "GET", "/baremetal/v1", {"x-auth-token": "admin"})
    assert (answer.status_int, answer.json["errors"][0]["title"]) == (404, "Not Found")


# --- authentication --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*SPELLINGS, "/v1/drivers", "/drivers/"])
@pytest.mark.parametrize("token", [None, "notused", "admin"])
def test_noauth2_accepts_a_request_without_a_token_as_from_an_administrator(app, path, token):
    """keystoneauth sends a token even with the auth type "none"."""
    assert web.ask(app, "GET", f"/baremetal{path}", {"x-auth-token": token} if token else {}).status_int == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_origin_is_not_an_administrator(app, method):
    """A browser sends such a POST without a preflight request if it has no custom headers."""
    page = {"origin": "https://example.net", "content-type": "text/plain"}
    answer = web.ask(app, method, "/baremetal/v1/nodes", page, b"{}" if method == "POST" else None)
    assert (answer.status_int, error_document(answer)["faultcode"]) == (401, "Client")
    answer = web.ask(app, "GET", "/baremetal/v1/drivers", {**page, "x-auth-token": "notused"})
    assert answer.status_int == 200


def test_a_page_of_an_allowed_origin_may_state_and_read_versions():
    app = web.mount(*apis.ALL, conf=web.configuration(cors__allowed_origin=["https://example.net"]))
    page = {"origin": "https://example.net"}
    headers = {"access-control-request-method": "PATCH", "access-control-request-headers": f"{VERSION},x-auth-token"}
    answer = web.ask(app, "OPTIONS", "/baremetal/v1/nodes/n", page | headers)
    assert (answer.status_int, answer.headers["access-control-allow-headers"]) == (200, f"{VERSION},x-auth-token")
    answer = web.ask(app, "GET", "/baremetal/v1/drivers", page | {"x-auth-token": "admin", VERSION: "1.60"})
    exposed = answer.headers["access-control-expose-headers"].lower().split(",")
    assert {VERSION, *RANGE} <= set(exposed)


def test_the_roles_of_a_token_apply_below_the_prefix(app):
    answer = web.ask(app, "GET", "/baremetal/v1/drivers", {"x-auth-token": "u"})
    assert (answer.status_int, error_document(answer)["faultcode"]) == (403, "Client")
    answer = web.ask(app, "GET", "/baremetal/v1/drivers", {"x-auth-token": "u", "x-roles": "reader"})
    assert answer.status_int == 200


def test_placement_still_needs_a_token_with_noauth2(app):
    assert [web.ask(app, "GET", path).status_int for path in ("", "/", "/resource_providers")] == [401, 200, 401]


@pytest.fixture(scope="module", params=["http_basic", "keystone"])
def protected_app(request, tmp_path_factory):
    """Return the service with authentication."""
    directory = tmp_path_factory.mktemp("protected")
    (directory / "placement.conf").write_text(KEYSTONE)
    (directory / "passwords").write_text(f"u:{bcrypt.hashpw(b'p', bcrypt.gensalt(4)).decode()}\n")
    options = {
        "api__auth_strategy": request.param,
        "oslo_middleware__http_basic_auth_user_file": str(directory / "passwords"),
    }
    return web.mount(*apis.ALL, conf=web.configuration([str(directory / "placement.conf")], **options))


@pytest.mark.parametrize("path", SPELLINGS)
def test_the_version_documents_are_open_to_all(protected_app, path):
    """Clients request them before they have a token."""
    answer = web.ask(protected_app, "GET", f"/baremetal{path}", {VERSION: "1.60"})
    assert (answer.status_int, version_headers(answer)[VERSION]) == (200, "1.60")


@pytest.mark.parametrize("path", ["/v1/drivers", "/drivers", "/v1.json", "/v1//", "//v1", "/nope"])
def test_all_other_paths_need_credentials(protected_app, path):
    answer = web.ask(protected_app, "GET", f"/baremetal{path}", {"x-roles": "admin", "x-user-id": "admin"})
    assert answer.status_int == 401
    assert error_document(answer) == {
        "faultcode": "Client",
        "faultstring": "The request has no credentials, or they are not accepted.",
        "debuginfo": None,
    }


@pytest.mark.parametrize(("roles", "status"), [("admin,service", 200), ("member,reader", 200), ("member", 403)])
def test_a_user_of_http_basic_has_the_configured_roles(tmp_path, roles, status):
    (tmp_path / "passwords").write_text(f"u:{bcrypt.hashpw(b'p', bcrypt.gensalt(4)).decode()}\n")
    options = {
        "api__auth_strategy": "http_basic",
        "api__http_basic_roles": roles.split(","),
        "oslo_middleware__http_basic_auth_user_file": str(tmp_path / "passwords"),
    }
    app = web.mount(*apis.ALL, conf=web.configuration(**options))
    credentials = {"authorization": "Basic " + base64.b64encode(b"u:p").decode()}
    assert web.ask(app, "GET", "/baremetal/v1/drivers", credentials).status_int == status


# --- log and metrics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/drivers", "/drivers", "/drivers/", "/v1/drivers.json"])
def test_log_and_metrics_name_the_route_of_the_table(app, caplog, path):
    caplog.set_level(logging.INFO, "placement.middleware.request_log")
    events = []

    def listener(environ, status, _seconds):
        events.append((environ.get(ROUTE), environ.get(FAILURE), status))

    signals.answered.connect(listener)
    try:
        web.ask(app, "GET", f"/baremetal{path}", {VERSION: "1.60"}, environ={"SCRIPT_NAME": "/below"})
    finally:
        signals.answered.disconnect(listener)
    assert events == [("/baremetal/v1/drivers", None, 200)]
    [record] = caplog.records
    assert record.extra["route"] == "/baremetal/v1/drivers"
    assert record.getMessage().endswith("microversion: 1.60")
    assert f'"GET /below/baremetal{path}" status: 200' in record.getMessage()
