"""The fixtures for functional tests of other projects, used like in nova."""

import concurrent.futures
import contextlib
import datetime
import http.server
import itertools
import sqlite3
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from unittest import mock

import fixtures
import pytest
import requests
from oslo_config import cfg
from oslo_config import fixture as config_fixture

from placement import conf as placement_conf
from placement import deploy
from placement.tests import fixtures as placement_db
from tests import web
from tests.children import PATIENCE
from tests.projects.nova import PlacementFixture

HERE = Path(__file__).parent


def test_the_service_answers_at_the_endpoint_with_the_token():
    with PlacementFixture() as placement:
        assert requests.get(placement.endpoint + "/resource_providers").status_code == 401
        assert requests.get(placement.endpoint, headers={"x-auth-token": placement.token}).status_code == 200
        assert placement.hosts() == set()


def test_the_token_permits_even_a_reshape():
    with PlacementFixture() as placement:
        host = placement.add_host()
        body = {
            "inventories": {host: {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 4}}}},
            "allocations": {},
        }
        assert placement.ask("POST", "/reshaper", "1.30", json=body).status_code == 204


def test_fixtures_are_independent_and_end_in_any_order():
    fixture, other_fixture = PlacementFixture(), PlacementFixture()
    fixture.setUp()
    other_fixture.setUp()
    fixture.add_host("one's")
    other_fixture.add_host("other's")
    assert (fixture.hosts(), other_fixture.hosts()) == ({"one's"}, {"other's"})
    fixture.conf_fixture.config(group="placement", max_allocation_candidates=5)
    assert other_fixture.conf_fixture.conf.placement.max_allocation_candidates != 5
    fixture.cleanUp()
    assert other_fixture.hosts() == {"other's"}
    other_fixture.cleanUp()
    with PlacementFixture() as third:
        assert third.hosts() == set()


def test_the_library_requests_is_restored():
    send = requests.adapters.HTTPAdapter.send
    with PlacementFixture() as placement:
        endpoint = placement.endpoint
        assert requests.adapters.HTTPAdapter.send is not send
        with PlacementFixture():
            pass
        assert requests.get(endpoint).status_code == 200
    assert requests.adapters.HTTPAdapter.send is send
    with pytest.raises(requests.ConnectionError):
        requests.get(endpoint)


def test_requests_to_other_services_are_not_intercepted():
    with elsewhere() as url, PlacementFixture():
        assert requests.get(url).status_code == 418


@contextlib.contextmanager
def elsewhere():
    """Yield the URL of a real server."""

    class Teapot(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(418)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Teapot) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_the_application_is_available_without_interception():
    with PlacementFixture(use_intercept=False) as placement:
        assert web.ask(placement.app, "GET", "/resource_providers", {"X-Auth-Token": "admin"}).status_code == 200
        assert not hasattr(placement, "endpoint")


def test_options_take_effect_while_the_service_runs():
    with PlacementFixture() as placement:
        for name in ("one", "two", "three"):
            placement.add_host(name)
        query = "/allocation_candidates?resources=VCPU:1"
        assert len(placement.ask("GET", query).json()["allocation_requests"]) == 3
        placement.conf_fixture.config(group="placement", max_allocation_candidates=2)
        assert len(placement.ask("GET", query).json()["allocation_requests"]) == 2


def test_a_database_outlives_the_services_on_it():
    """Like nova's test of bug 1679750, which stops and restarts the service."""
    conf = cfg.ConfigOpts()
    with config_fixture.Config(conf) as conf_fixture:
        placement_conf.register_opts(conf)
        with placement_db.Database(conf_fixture, set_config=True):
            with PlacementFixture(conf_fixture=conf_fixture, db=False, register_opts=False) as placement:
                host = placement.add_host()
                assert placement.claim(uuid.uuid4(), host, 3) == 204
            with PlacementFixture(conf_fixture=conf_fixture, db=False, register_opts=False) as placement:
                assert placement.usage(host) == 3
            app = deploy.loadapp(conf)
            usages = web.ask(app, "GET", f"/resource_providers/{host}/usages", {"X-Auth-Token": "admin"})
            assert usages.json["usages"] == {"VCPU": 3}
        with placement_db.Database(conf_fixture, set_config=True), PlacementFixture(conf_fixture, False) as placement:
            assert placement.hosts() == set()


def test_a_configuration_from_files_keeps_its_values(tmp_path):
    file = tmp_path / "placement.conf"
    file.write_text("[placement]\nmax_allocation_candidates = 17\n[placement_database]\nconnection = sqlite://\n")
    conf = web.configuration([str(file)])
    with config_fixture.Config(conf) as conf_fixture, PlacementFixture(conf_fixture):
        assert conf.placement.max_allocation_candidates == 17


def test_a_subclass_may_choose_a_database_whose_data_is_kept(tmp_path):
    """nova does so in tests with native threads: it uses a file that it has switched to WAL."""
    path = tmp_path / "placement.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")

    class InFile(PlacementFixture):
        def _configure_placement(self, conf_fixture):
            super()._configure_placement(conf_fixture)
            self.useFixture(fixtures.NestedTempfile())
            conf_fixture.config(connection=f"sqlite:///{path}", group="placement_database")

    with InFile() as placement:
        placement.add_host("remembered")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with InFile() as placement:
        assert placement.hosts() == {"remembered"}


def test_a_database_on_a_server_gets_its_schema(database_url):
    with config_fixture.Config(web.configuration(placement_database__connection=database_url)) as conf_fixture:
        with placement_db.Database(conf_fixture), PlacementFixture(conf_fixture, db=False) as placement:
            placement.add_host("remembered")
        with placement_db.Database(conf_fixture), PlacementFixture(conf_fixture, db=False) as placement:
            assert placement.hosts() == {"remembered"}


def test_clocks_may_be_replaced():
    """Tests freeze them, set them years ahead, and replace sleep."""
    long_ago, leaps = datetime.datetime(1999, 12, 31), itertools.count(step=3 * 3600.0)
    with (
        mock.patch("oslo_utils.timeutils.utcnow", return_value=long_ago),
        mock.patch("time.time", return_value=0.0),
        mock.patch("time.monotonic", side_effect=leaps),
        mock.patch("time.sleep"),
        PlacementFixture() as placement,
    ):
        for number in range(1, 4):
            host = placement.add_host(f"host{number}", vcpus=1)
            document = placement.ask("GET", "/allocation_candidates?resources=VCPU:1").json()
            assert list(document["provider_summaries"]) == [host]
            assert placement.claim(uuid.uuid4(), host) == 204
            assert placement.usage(host) == 1


def test_threads_claim_the_capacity_and_no_more():
    with PlacementFixture() as placement:
        host = placement.add_host(vcpus=16)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: placement.claim(uuid.uuid4(), host), range(24)))
        assert sorted(statuses) == [204] * 16 + [409] * 8
        assert placement.usage(host) == 16


def test_green_threads_claim_the_capacity_and_no_more():
    """In a separate process, because eventlet patches it completely."""
    script = [sys.executable, "-W", "ignore", "-m", "tests.projects.green"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=PATIENCE, cwd=HERE.parent.parent)
    assert done.stdout == "16 taken, 8 refused, 16 used\n" * 2, done.stderr
