"""The order of the layers (docs: layers), and the checks at start."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from placement import deploy, errors, extension
from placement import microversion as mv
from placement.db.schema import schema
from placement.errors import StartError
from placement.extension import Extension
from placement.http.endpoint import endpoint
from placement.http.response import ok
from placement.index.store import default_directory
from placement.routes import PLACEMENT
from tests import closed, web

ADMIN = {"x-auth-token": "admin"}
REQUEST_ID = re.compile("req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@endpoint()
def show_user(req):
    return ok(web.user(req))


@endpoint()
def conflict(_req):
    raise errors.ProviderGenerationConflict()


@endpoint()
def fail(_req):
    raise sa.exc.ProgrammingError("SELECT secret FROM t", {}, Exception("secret"))


TABLE = {"/": {"GET": show_user}, "/well": {"GET": show_user}, "/conflict": {"GET": conflict}, "/broken": {"GET": fail}}


@pytest.fixture(scope="module")
def app():
    return web.service(TABLE)


# --- the index files ---


def test_index_files_are_in_memory_by_default_if_there_is_a_directory_in_memory(monkeypatch):
    def path(**options):
        return deploy.index_store(web.configuration(placement__index_directory=None, **options)).path("x")

    assert path() is None, "a database in memory"
    options = {"placement_database__connection": "sqlite:////var/placement.sqlite"}
    assert path(**options) == Path(f"/dev/shm/placement-{os.geteuid()}/x.1.index")
    monkeypatch.setattr(Path, "is_dir", lambda _: False)
    assert default_directory("/var/lib/placement") == Path("/var/lib/placement/index")


# --- the layers ---


def test_a_failure_of_a_layer_is_rendered_in_the_form_of_the_api():
    def refusing_layer(_application, _service):
        return lambda *_request: conflict.handler(None)

    app = web.service(TABLE, layers=(*deploy.LAYERS, refusing_layer))
    answer = web.ask(app, "GET", "/well", ADMIN)
    assert (answer.status_int, answer.json["errors"][0]["title"]) == (409, "Conflict")
    assert "openstack-api-version" not in answer.headers


@pytest.mark.parametrize(
    ("path", "headers", "status", "versioned"),
    [
        ("/well", ADMIN, 200, True),
        ("/conflict", ADMIN, 409, True),
        ("/nope", ADMIN, 404, True),
        ("/well", ADMIN | {"accept": "text/html"}, 406, True),
        ("/well", {}, 401, False),
        ("/well", ADMIN | {"openstack-api-version": "placement 9.9"}, 406, False),
        ("/well", ADMIN | {"openstack-api-version": "placement x"}, 400, False),
        ("/broken", ADMIN, 500, False),
    ],
)
def test_every_response_has_a_request_id_and_names_a_negotiated_version(app, path, headers, status, versioned):
    answer = web.ask(app, "GET", path, {"openstack-api-version": "placement 1.7"} | headers)
    assert answer.status_int == status
    assert REQUEST_ID.fullmatch(answer.headers["x-openstack-request-id"])
    assert answer.headers.get("openstack-api-version") == ("placement 1.7" if versioned else None)
    assert answer.headers.get("vary") == ("openstack-api-version" if versioned else None)


def test_an_error_document_has_the_id_of_its_request(app):
    answer = web.ask(app, "GET", "/conflict", ADMIN)
    assert answer.json["errors"][0]["request_id"] == answer.headers["x-openstack-request-id"]


def test_authentication_is_checked_before_the_version(app):
    assert web.ask(app, "GET", "/well", {"openstack-api-version": "placement 9.9"}).status_int == 401


def test_the_version_is_checked_before_the_route_and_the_length(app):
    headers = ADMIN | {"openstack-api-version": "placement 9.9"}
    assert web.ask(app, "GET", "/nope", headers).status_int == 406
    assert web.ask(app, "GET", "/well", headers | {"content-length": "x"}).status_int == 406


def test_a_request_for_latest_gets_the_number_of_the_version(app):
    answer = web.ask(app, "GET", "/", {"openstack-api-version": "placement latest"})
    assert answer.headers["openstack-api-version"] == f"placement {mv.LATEST}"


def test_an_internal_error_is_an_error_document_without_details(app, caplog):
    answer = web.ask(app, "GET", "/broken", ADMIN | {"openstack-api-version": "placement 1.23"})
    assert answer.status_int == 500
    assert answer.json["errors"][0]["code"] == "placement.undefined_code"
    assert "secret" not in answer.text
    assert "secret" in caplog.text
    assert "GET /broken" in caplog.text


# --- CORS and proxies ---


@pytest.fixture(scope="module")
def open_app():
    return web.service(TABLE, cors__allowed_origin=["http://h"])


def preflight(origin="http://h", **headers):
    return {"origin": origin, "access-control-request-method": "GET"} | headers


def test_a_preflight_request_from_an_allowed_origin_gets_cors_headers(open_app):
    headers = preflight(**{"access-control-request-headers": "openstack-api-version,x-auth-token"})
    answer = web.ask(open_app, "OPTIONS", "/well", headers)
    assert answer.status_int == 200
    assert answer.headers["access-control-allow-origin"] == "http://h"
    assert answer.headers["access-control-allow-methods"] == "GET"
    assert answer.headers["access-control-allow-headers"] == "openstack-api-version,x-auth-token"
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["access-control-max-age"] == "3600"
    assert "openstack-api-version" not in answer.headers


@pytest.mark.parametrize(
    "headers", [preflight("http://other"), {}, preflight(**{"access-control-request-headers": "x"})]
)
def test_other_preflight_requests_get_no_cors_headers(open_app, headers):
    answer = web.ask(open_app, "OPTIONS", "/well", headers)
    assert answer.status_int == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_every_response_including_401_has_cors_headers(open_app):
    for headers, status in ((ADMIN, 200), ({}, 401)):
        answer = web.ask(open_app, "GET", "/well", {"origin": "http://h"} | headers)
        assert answer.status_int == status
        assert answer.headers["access-control-allow-origin"] == "http://h"
        assert "OpenStack-API-Version" in answer.headers["access-control-expose-headers"]
        assert "Origin" in answer.headers["vary"]


def test_options_is_not_an_allowed_method_unless_cors_is_configured(app):
    answer = web.ask(app, "OPTIONS", "/well", ADMIN | preflight())
    assert answer.status_int == 405
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@endpoint()
def place(req):
    return ok([req.absolute_url("/x"), req.mount_path])


@pytest.mark.parametrize(("trusted", "url"), [(True, "https://public:8/prefix/x"), (False, "http://localhost:80/x")])
def test_proxy_headers_are_evaluated_if_configured(trusted, url):
    app = web.service({"/": {"GET": place}}, oslo_middleware__enable_proxy_headers_parsing=trusted)
    headers = {"x-forwarded-proto": "https", "x-forwarded-host": "public:8", "x-forwarded-prefix": "/prefix"}
    assert web.ask(app, "GET", "/", headers).json[0] == url


@pytest.mark.parametrize(("trusted", "url"), [(True, "https://public:8/x"), (False, "http://localhost:80/x")])
def test_the_standard_forwarded_header_is_evaluated_if_configured(trusted, url, caplog):
    caplog.set_level("INFO")
    app = web.service({"/": {"GET": place}}, oslo_middleware__enable_proxy_headers_parsing=trusted)
    headers = {"forwarded": "for=192.0.2.7;host=public:8;proto=https"}
    assert web.ask(app, "GET", "/", headers, environ={"REMOTE_ADDR": "127.0.0.1"}).json[0] == url
    assert ("192.0.2.7" in caplog.text) is trusted


def test_headers_of_a_trusted_proxy_forge_no_url_and_no_log_line(caplog):
    caplog.set_level("INFO")
    app = web.service({"/": {"GET": place}}, oslo_middleware__enable_proxy_headers_parsing=True)
    headers = {
        "x-forwarded-proto": "javascript",
        "x-forwarded-for": '192.0.2.7 "GET /x" status: 200',
        "x-forwarded-prefix": "/p",
    }

    def server(environ, start_response):
        del environ["SCRIPT_NAME"]
        return app(environ, start_response)

    assert web.ask(server, "GET", "/", headers).json[0] == "http://localhost:80/p/x"
    assert caplog.messages[-1].startswith('192.0.2.7 %22GET /x%22 status: 200 "GET /p/" status: ')


def test_the_log_names_the_client_and_not_the_proxy(caplog):
    caplog.set_level("DEBUG")
    app = web.service(TABLE, oslo_middleware__enable_proxy_headers_parsing=True)
    headers = ADMIN | {"x-forwarded-for": "192.0.2.7"}
    assert web.ask(app, "GET", "/well", headers, environ={"REMOTE_ADDR": "127.0.0.1"}).status_int == 200
    assert 'Starting request: 192.0.2.7 "GET /well"' in caplog.text
    assert '192.0.2.7 "GET /well" status: 200' in caplog.text


@pytest.mark.parametrize("headers", [preflight(), preflight("http://other")])
def test_a_preflight_request_is_logged_and_has_an_id(open_app, caplog, headers):
    caplog.set_level("INFO")
    answer = web.ask(open_app, "OPTIONS", "/well", headers)
    assert REQUEST_ID.fullmatch(answer.headers["x-openstack-request-id"])
    assert '"OPTIONS /well" status: 200' in caplog.text


# --- start ---


def sqlite(path, **overrides):
    values = {"placement_database__connection": f"sqlite:///{path}", "placement_database__max_retries": 0, **overrides}
    return web.configuration(**values)


def class_names(app):
    answer = web.ask(app, "GET", "/resource_classes", ADMIN | {"openstack-api-version": "placement latest"})
    return [row["name"] for row in answer.json["resource_classes"]]


def test_the_service_starts_on_a_new_database_and_again_on_the_same(tmp_path):
    """LP 1799246, 1784155: an application created twice in one interpreter."""
    conf = sqlite(tmp_path / "x", placement_database__sync_on_startup=True)
    first, second = deploy.loadapp(conf), deploy.loadapp(sqlite(tmp_path / "x"))
    headers = ADMIN | {"openstack-api-version": "placement latest"}
    assert web.ask(first, "PUT", "/resource_classes/CUSTOM_X", headers).status_int == 201
    assert class_names(first) == class_names(second)
    assert class_names(first)[0] == "VCPU"
    assert class_names(first)[-1] == "CUSTOM_X"


def test_two_services_in_one_process_share_no_policy_and_no_data(tmp_path):
    sync = {"placement_database__sync_on_startup": True}
    strict = deploy.loadapp(sqlite(tmp_path / "a", **sync))
    legacy = deploy.loadapp(sqlite(tmp_path / "b", oslo_policy__enforce_new_defaults=False, **sync))
    headers = ADMIN | {"openstack-api-version": "placement latest", "content-type": "application/json"}
    assert web.ask(strict, "POST", "/reshaper", headers, b"{}").status_int == 403
    assert web.ask(legacy, "POST", "/reshaper", headers, b"{}").status_int == 400
    web.ask(strict, "PUT", "/resource_classes/CUSTOM_X", headers)
    assert "CUSTOM_X" in class_names(strict)
    assert "CUSTOM_X" not in class_names(legacy)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({}, 'The database has no tables yet. Run "placement-manage db sync".'),
        ({"placement_database__connection": "nonsense"}, r"\[placement_database\]connection: Could not parse"),
        ({"placement_database__connection": "nonsense://h/d"}, r"\[placement_database\]connection: Can't load plugin"),
        (
            {"placement_database__connection": f"mysql+pymysql://u:p@{closed.ADDRESS}/d"},
            r"The database cannot be reached.*refused.*; .* \[placement_database\]connection$",
        ),
    ],
)
def test_an_unusable_database_prevents_the_start_with_a_sentence(tmp_path, overrides, sentence):
    with pytest.raises(StartError, match=sentence):
        deploy.loadapp(sqlite(tmp_path / "x", **overrides))


def test_each_failed_connection_is_a_log_line_and_the_reason_is_logged_once(tmp_path, caplog):
    url = f"mysql+pymysql://u:p@{closed.ADDRESS}/d"
    options = {"placement_database__max_retries": 2, "placement_database__retry_interval": 0}
    with pytest.raises(StartError):
        deploy.loadapp(sqlite(tmp_path / "x", placement_database__connection=url, **options))
    lines = [record.getMessage() for record in caplog.records if record.name == "placement.db.database"]
    assert [line.partition(":")[0] for line in lines[:1]] == ["The database does not answer yet"]
    assert lines[1:] == [f"The database at {closed.ADDRESS} did not answer attempt {n} of 3" for n in (1, 2)]


def test_an_older_schema_is_not_served_and_a_newer_one_is(tmp_path, caplog):
    conf = sqlite(tmp_path / "x", placement_database__sync_on_startup=True)
    deploy.loadapp(conf)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/x", poolclass=NullPool)
    schema.stamp(engine, "a082b8bb98d0")
    with pytest.raises(StartError, match="is at revision a082b8bb98d0"):
        deploy.loadapp(sqlite(tmp_path / "x"))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'ffffffffffff'"))
    assert class_names(deploy.loadapp(sqlite(tmp_path / "x")))
    assert "revision ffffffffffff" in caplog.text


def test_an_unreadable_policy_file_prevents_the_start(tmp_path):
    (tmp_path / "policy.yaml").write_text('"placement:usages": "role:((')
    conf = sqlite(
        tmp_path / "x",
        placement_database__sync_on_startup=True,
        oslo_policy__policy_file=str(tmp_path / "policy.yaml"),
    )
    with pytest.raises(StartError, match=r"\[oslo_policy\]policy_file: "):
        deploy.loadapp(conf)


def test_extensions_with_the_same_prefix_prevent_the_start(tmp_path, monkeypatch):
    apis = [dataclasses.replace(PLACEMENT, name=name, prefix="/same", rules=()) for name in ("one", "two")]
    extensions = {api.name: Extension(name=api.name, api=lambda api=api: api) for api in apis}
    conf = sqlite(tmp_path / "x", placement_database__sync_on_startup=True, extensions__enabled=["one", "two"])
    monkeypatch.setattr(extension, "installed_extensions", lambda: extensions)
    with pytest.raises(StartError, match=r'^The APIs one and two have the same prefix, "/same"\.$'):
        deploy.loadapp(conf)


def test_unknown_options_are_logged_at_start(tmp_path, caplog):
    path = tmp_path / "placement.conf"
    path.write_text("[placement]\nmax_request_group = 7\n")
    conf = sqlite(tmp_path / "x", config_files=[str(path)], placement_database__sync_on_startup=True)
    deploy.loadapp(conf)
    assert f"{path}: unknown option [placement]max_request_group; did you mean" in caplog.text
