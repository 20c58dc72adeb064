"""Profiles of requests, and traces of osprofiler."""

from __future__ import annotations

import pstats
import threading
import time

import pytest
import webob
from osprofiler import _utils as signing
from osprofiler.drivers import base

from placement import deploy
from placement.errors import StartError
from placement.http.endpoint import endpoint
from placement.http.response import ok
from placement.middleware.profiler import VARIABLE
from tests import made, web
from tests.made import opened

ADMIN = {"x-auth-token": "admin"}


@endpoint()
def show(_req, name):
    return ok({"name": name})


TABLE = {"/things/{name}": {"GET": show}}


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def test_each_request_writes_a_profile(profiles):
    app = web.service(TABLE)
    assert web.ask(app, "GET", "/things/..%2f%20x", ADMIN).status_int == 404
    assert web.ask(app, "GET", "/things/a", ADMIN).json == {"name": "a"}
    assert len([*profiles.glob("GET.things.x.*")]) == 1
    [second] = profiles.glob("GET.things.a.*")
    assert any(name == "show" for _, _, name in pstats.Stats(str(second)).stats)


def test_a_path_may_be_longer_than_the_name_of_a_file(profiles):
    assert web.ask(web.service(TABLE), "GET", f"/things/{'a' * 300}", ADMIN).status_int == 200
    assert len(list(profiles.iterdir())) == 1


def test_a_request_whose_path_the_server_dropped_is_refused(profiles):
    request = webob.Request.blank("/things/a")
    del request.environ["PATH_INFO"]  # uWSGI omits variables that exceed its buffer
    assert request.get_response(web.service(TABLE)).status_int == 414
    assert [file.name.split(".")[:2] for file in profiles.iterdir()] == [["GET", "root"]]


def test_profiled_requests_run_one_at_a_time(profiles):
    """Python 3.12 and newer refuse a second active profiler."""
    inside, counts = set(), []

    @endpoint()
    def slow(_req):
        inside.add(threading.get_ident())
        counts.append(len(inside))
        time.sleep(0.02)
        inside.remove(threading.get_ident())
        return ok({})

    app = web.service({"/slow": {"GET": slow}})
    threads = [threading.Thread(target=lambda: web.ask(app, "GET", "/slow", ADMIN)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1] * 8
    assert len(list(profiles.iterdir())) == 8


def test_a_missing_profile_directory_prevents_the_start(monkeypatch):
    monkeypatch.setenv(VARIABLE, "/nowhere")
    with pytest.raises(StartError, match=r"\$OS_WSGI_PROFILER: /nowhere"):
        web.service(TABLE)


# --- osprofiler ---


class MemoryDriver(base.Driver):
    """An osprofiler driver that keeps traces in memory, selected by its name in the connection string."""

    traces_sent: list[dict] = []  # noqa: RUF012

    @classmethod
    def get_name(cls):
        return "memory"

    def notify(self, info, **_):
        self.traces_sent.append(info)


@pytest.fixture
def configuration_of(tmp_path):
    def read(text):
        path = tmp_path / "placement.conf"
        path.write_text(f"[profiler]\n{text}")
        return web.configuration([str(path)])

    MemoryDriver.traces_sent.clear()
    return read


def signed_headers():
    content, signature = signing.signed_pack({"base_id": "b" * 36, "parent_id": "p" * 36, "hmac_key": "key"}, "key")
    return ADMIN | {"x-trace-info": content.decode(), "x-trace-hmac": signature}


TRACING = "enabled = true\nhmac_keys = key\ntrace_sqlalchemy = true\nconnection_string = memory://\n"


@pytest.mark.parametrize(
    ("text", "headers", "traces"),
    [
        (TRACING, signed_headers(), {"wsgi-start", "wsgi-stop", "db-start", "db-stop"}),
        (TRACING.replace("trace_sqlalchemy = true", ""), signed_headers(), {"wsgi-start", "wsgi-stop"}),
        (TRACING, ADMIN, set()),
        (TRACING.replace("hmac_keys = key", "hmac_keys = other"), signed_headers(), set()),
        (TRACING.replace("enabled = true", ""), signed_headers(), set()),
    ],
)
def test_traces_are_sent_if_osprofiler_is_enabled_and_the_client_has_the_key(
    configuration_of, tmp_path, text, headers, traces
):
    with opened(f"sqlite:///{tmp_path}/x") as database:
        made.sync(database.engine)
        app = deploy.loadapp(configuration_of(text), database)
        assert web.ask(app, "GET", "/resource_providers", headers).status_int == 200
    assert {trace["name"] for trace in MemoryDriver.traces_sent} == traces


def test_an_unusable_profiler_backend_is_logged_and_requests_are_served(configuration_of, tmp_path, caplog):
    with opened(f"sqlite:///{tmp_path}/x") as database:
        made.sync(database.engine)
        app = deploy.loadapp(configuration_of(TRACING.replace("memory", "unknown")), database)
        assert web.ask(app, "GET", "/resource_providers", signed_headers()).status_int == 200
    assert "osprofiler is disabled" in caplog.text
