"""Services that cannot start: the web server logs the reason in one line and exits."""

from __future__ import annotations

import os
import re
import signal

import pytest
import sqlalchemy as sa

from tests import children, web_servers

pytestmark = pytest.mark.xdist_group("web servers")
#: uWSGI's messages when it exits without an application, and when it restarts a worker or serves.
NO_APPLICATION, RUNNING = "OOPS ! failed loading app", ("Respawned uWSGI worker", "WSGI app 0 ")


def reason_of_refusal(url, options):
    """Start uWSGI, wait until it has exited by itself, and return the log line with the reason."""
    argv, _, directory = web_servers.uwsgi_command(url, options)
    environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)}
    service = children.Child(argv, directory / "log", signal.SIGTERM, env=environment)
    try:
        service.wait_until(lambda: any(sign in service.log.read_text() for sign in (NO_APPLICATION, *RUNNING)))
        assert not any(sign in service.log.read_text() for sign in RUNNING), service.log.read_text()
        service.wait_until(lambda: service.ended)
    finally:
        service.kill()
    log = service.log.read_text()
    lines = re.findall("^placement cannot start: .*$", log, re.MULTILINE)
    assert len(lines) in (1, 2), log  # each worker logs it once
    assert len(set(lines)) == 1, log
    # uWSGI interrupts the other worker, which may still be importing.
    assert {*re.findall(r"^Traceback .*\n(?: .*\n|\n)*(\S+)", log, re.MULTILINE)} <= {"KeyboardInterrupt"}, log
    return lines[0]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_uwsgi_exits_if_the_password_of_the_database_is_wrong(database_url):
    wrong = sa.make_url(database_url).set(password="mistaken").render_as_string(hide_password=False)
    line = reason_of_refusal(wrong, {"placement_database": {"connection": wrong, "max_retries": 0}})
    assert "denied" in line
    assert "mistaken" not in line


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_uwsgi_exits_if_the_database_has_no_schema(database_url):
    settings = {"placement_database": {"connection": database_url, "sync_on_startup": False}}
    assert "placement-manage db sync" in reason_of_refusal(database_url, settings)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_uwsgi_exits_if_the_policy_is_invalid(database_url):
    policy = children.run_directory() / "invalid-policy.yaml"
    policy.write_text('"placement:traits:list": "role:admin\n')
    assert "policy" in reason_of_refusal(database_url, {"oslo_policy": {"policy_file": policy}})
