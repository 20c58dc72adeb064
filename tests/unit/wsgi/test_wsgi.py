"""The WSGI entry points, each in its own process, because it configures the logging of the process."""

from __future__ import annotations

import os
import sys

import pytest

from placement import microversion as mv
from tests import preloaded

CONFIGURATION = """
[DEFAULT]
use_stderr = true
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{directory}/placement.sqlite
sync_on_startup = true
"""
ASK = """
import sys
from placement.wsgi import api, init_application
from tests import web
for app in (api.application, init_application()):
    answer = web.ask(app, "GET", "/", {"openstack-api-version": "placement latest"})
    print(answer.status, answer.headers["openstack-api-version"])
"""


def python(code, directory=None, **environ):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    if directory:
        environ["OS_PLACEMENT_CONFIG_DIR"] = str(directory)
    return preloaded.service().run([sys.executable, "-c", code], clean | environ)


def test_the_module_and_the_factory_provide_applications(tmp_path):
    (tmp_path / "placement.conf").write_text(CONFIGURATION.format(directory=tmp_path))
    result = python(ASK, tmp_path)
    assert result.stdout.splitlines() == [f"200 OK placement {mv.LATEST}"] * 2
    assert result.returncode == 0
    assert '"GET /" status: 200' in result.stderr
    assert "connection" not in result.stderr


def test_options_are_logged_in_debug_mode_without_secrets(tmp_path):
    (tmp_path / "placement.conf").write_text(CONFIGURATION.format(directory=tmp_path) + "[DEFAULT]\ndebug = true\n")
    log = python(ASK, tmp_path).stderr
    assert "placement_database.connection" in log
    assert "placement.sqlite" not in log
    assert 'Starting request: - "GET /"' in log


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "placement cannot start: Failed to find some config files: "),
        ("", "placement cannot start: value required for option connection in group [placement_database]"),
        ("[placement_database]\nconnection = nonsense\n", "placement cannot start: [placement_database]connection: "),
        (
            CONFIGURATION.replace("noauth2", "keystone"),
            "placement cannot start: [keystone_authtoken] does not specify how to reach the Identity service: ",
        ),
        (
            CONFIGURATION + "[DEFAULT]\nlog_config_append = /nowhere\n",
            "placement cannot start: Error loading logging config /nowhere: ",
        ),
        (
            CONFIGURATION + "[DEFAULT]\nlog_file = {directory}/placement.conf/log\n",
            "placement cannot start: The log cannot be written: [Errno 20] Not a directory: ",
        ),
    ],
)
def test_a_failed_start_is_reported_in_one_line(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / "placement.conf").write_text(text.format(directory=tmp_path))
    result = python("import placement.wsgi.api", tmp_path)
    assert result.returncode == 22  # uWSGI restarts the worker after any other exit code
    assert result.stderr.splitlines()[-1].startswith(sentence)
    assert result.stderr.count("placement cannot start") == 1
    assert "Traceback" not in result.stderr
