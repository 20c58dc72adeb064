"""/healthcheck: 200 while the process can serve requests, otherwise 503 with the reason."""

from __future__ import annotations

import queue
import threading
import time

import pytest
import sqlalchemy as sa

from placement import deploy
from placement.db.schema.tables import feed_instance
from placement.db.upkeep import standard
from placement.errors import StartError
from tests import made, web
from tests.clock import PATIENCE
from tests.docs.run_by import blocks_of
from tests.made import opened

TEXT = {"accept": "text/plain"}


def wait_until_healthy(app):
    """Wait until a check of the database succeeds within its time limit."""
    until = time.monotonic() + PATIENCE
    while web.ask(app, "GET", "/healthcheck").status_int != 200:
        assert time.monotonic() < until


def serve(database, **options):
    return deploy.loadapp(web.configuration(**options), database)


def test_the_healthcheck_needs_no_token_and_reports_ok(database):
    app = serve(database)
    answer = web.ask(app, "GET", "/healthcheck", TEXT)
    assert (answer.status_int, answer.text) == (200, "OK")
    assert "x-openstack-request-id" in answer.headers
    assert web.ask(app, "GET", "/healthcheck").json == {"detailed": False, "reasons": ["OK"]}
    assert web.ask(app, "HEAD", "/healthcheck").status_int == 204
    assert web.ask(app, "GET", "/healthcheck/").status_int == 401


@pytest.mark.parametrize("private_server", ["mariadb", "postgresql"], indirect=True)
def test_the_healthcheck_reports_an_unreachable_database_until_it_is_back(private_server):
    with opened(private_server.create_database()) as database:
        made.sync(database.engine)
        standard.insert(database)
        app, detailed = serve(database), serve(database, healthcheck__detailed=True)
        wait_until_healthy(app)
        private_server.kill()
        answer = web.ask(app, "GET", "/healthcheck", TEXT)
        assert (answer.status_int, answer.text) == (503, "The database cannot be reached.")
        [reason] = web.ask(detailed, "GET", "/healthcheck").json["reasons"]
        assert "refused" in reason["details"]
        assert web.ask(app, "GET", "/").status_int == 200
        private_server.start()
        wait_until_healthy(app)


@pytest.mark.parametrize("private_server", ["mariadb", "postgresql"], indirect=True)
def test_a_frozen_database_is_reported_before_the_read_timeout(private_server):
    """All concurrent checks report it, because they do not use the connections of the service."""
    # The service's own timeout is longer than the test.
    with opened(private_server.create_database(), read_timeout=3600) as database:
        made.sync(database.engine)
        app = serve(database)
        wait_until_healthy(app)
        answers = queue.SimpleQueue()
        askers = [
            threading.Thread(target=lambda: answers.put(web.ask(app, "GET", "/healthcheck", TEXT))) for _ in range(10)
        ]
        with private_server.frozen():
            for asker in askers:
                asker.start()
            assert [answers.get(timeout=PATIENCE).status_int for _ in askers] == [503] * 10
        wait_until_healthy(app)


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_locks_of_other_sessions_do_not_affect_the_healthcheck(database):
    app = serve(database)
    with database.engine.begin() as other_session:
        other_session.execute(sa.select(feed_instance).with_for_update())
        assert web.ask(app, "GET", "/healthcheck").status_int == 200


def test_a_database_without_tables_is_reported(database_url):
    """The tables were dropped, or downgraded for another Placement, while the service runs."""
    with opened(database_url) as database:
        made.sync(database.engine)
        app = serve(database)
        assert web.ask(app, "GET", "/healthcheck").status_int == 200
        feed_instance.drop(database.engine)
        answer = web.ask(app, "GET", "/healthcheck", TEXT)
        assert answer.status_int == 503
        assert answer.text.startswith("The database lacks tables of this service.")


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_database_that_returns_an_error_is_unhealthy(database_url):
    with opened(database_url) as database:
        made.sync(database.engine)
        app = serve(database)
        feed_instance.drop(database.engine)
        with database.engine.begin() as connection:
            connection.exec_driver_sql("CREATE VIEW feed_instance AS SELECT no_such_function() AS uuid")
        answer = web.ask(app, "GET", "/healthcheck", TEXT)
        assert (answer.status_int, answer.text) == (503, "The database responds with an error.")


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_file_takes_the_service_out_of_rotation(database, tmp_path):
    disabled = tmp_path / "disabled"
    (block,) = blocks_of(__file__, "docs/configuration.rst")
    (tmp_path / "placement.conf").write_text(block.text.replace("/run/placement/disabled", str(disabled)))
    app = serve(database, config_files=[str(tmp_path / "placement.conf")])
    assert web.ask(app, "GET", "/healthcheck").status_int == 200
    disabled.touch()
    answer = web.ask(app, "GET", "/healthcheck")
    assert answer.status_int == 503
    assert "DISABLED BY FILE" in answer.json["reasons"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_client_without_a_single_valid_address_is_not_an_allowed_source(database):
    """A proxy may name several addresses, or one with its port; a Unix socket has no address."""
    app = serve(
        database,
        healthcheck__allowed_source_ranges=["192.0.2.0/24"],
        oslo_middleware__enable_proxy_headers_parsing=True,
    )
    for address in ("192.0.2.7, 198.51.100.7", "192.0.2.7:4711", "unknown"):
        headers = {"x-auth-token": "admin", "x-forwarded-for": address}
        assert web.ask(app, "GET", "/healthcheck", headers).status_int == 404


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"healthcheck__allowed_source_ranges": ["garbage"]}, r"\[healthcheck\]allowed_source_ranges: 'garbage'"),
        ({"healthcheck__backends": ["disable_by_file", "enable_by_files"]}, r"\[healthcheck\]backends: "),
    ],
)
def test_invalid_options_prevent_the_start(database, overrides, sentence):
    with pytest.raises(StartError, match=sentence):
        serve(database, **overrides)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_clients_outside_of_the_allowed_ranges_get_404_for_the_healthcheck(database):
    app = serve(database, healthcheck__allowed_source_ranges=["192.0.2.0/24"])
    for address, status in (("192.0.2.7", 200), ("198.51.100.7", 404)):
        answer = web.ask(app, "GET", "/healthcheck", {"x-auth-token": "admin"}, environ={"REMOTE_ADDR": address})
        assert answer.status_int == status
