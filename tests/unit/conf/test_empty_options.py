"""Options with an empty value: the service works, or one line at start names the option and the reason."""

from __future__ import annotations

import logging
import re
import warnings

import pytest
from oslo_config import cfg
from oslo_log import log

from placement import conf as options
from placement.conf import reading
from placement.wsgi import init_application
from tests import web

ADMIN = {"x-auth-token": "admin", "openstack-api-version": "placement latest", "origin": "http://elsewhere"}
UUID = "11111111-1111-4111-8111-111111111111"


def every_option():
    conf = cfg.ConfigOpts()
    options.register(conf)
    log.register_options(conf)
    return [
        pytest.param(group or "DEFAULT", name, id=reading.place(group, name)) for group, name in reading.names(conf)
    ]


@pytest.fixture
def restored_logging(restored_log):
    """Restore the log of the process and the handling of warnings after the test."""
    showwarning = warnings.showwarning
    yield
    logging.captureWarnings(False)
    warnings.showwarning = showwarning


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("configured")


def start_or_message(directory, section, name):
    """Return the service and an empty message, or None and the message of the failed start."""
    try:
        return start(directory, section, name), ""
    except SystemExit as end:
        return None, str(end)


def start(directory, section, name, strategy="noauth2"):
    """Return the service, started with an empty value of one option.

    Raises:
        SystemExit: The service cannot start.
    """
    groups = {
        "placement_database": {
            "connection": f"sqlite:///{directory}/placement.sqlite",
            "sync_on_startup": "true",
            "max_retries": "0",
        },
        "api": {"auth_strategy": strategy},
        "placement": {"index_directory": f"{directory}/index"},
    }
    groups.setdefault(section, {})[name] = ""
    lines = (f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in groups[group].items()) for group in groups)
    (directory / "placement.conf").write_text("".join(lines))
    return init_application()


@pytest.mark.parametrize(("section", "name"), every_option())
def test_an_empty_value_works_or_is_reported(restored_logging, directory, monkeypatch, section, name):
    monkeypatch.setenv(options.CONFIG_DIR_VARIABLE, str(directory))
    app, line = start_or_message(directory, section, name)
    if line:
        assert re.fullmatch(rf"placement cannot start: \[{section}\]{name}: \w.*", line)
        return
    body = f'{{"name": "{name}", "uuid": "{UUID}"}}'.encode()
    headers = ADMIN | {"content-type": "application/json"}
    assert web.ask(app, "POST", "/resource_providers", headers, body).status_int == 200
    for path in ("/", "/healthcheck", "/resource_providers", "/allocation_candidates?resources=VCPU:1", "/usages"):
        answer = web.ask(app, "GET", path, ADMIN)
        assert answer.status_int == (400 if path == "/usages" else 200), answer.text
    assert web.ask(app, "DELETE", f"/resource_providers/{UUID}", ADMIN).status_int == 204


@pytest.mark.parametrize("strategy", ["http_basic", "keystone"])
def test_an_empty_value_that_an_auth_strategy_needs_is_reported(restored_logging, directory, monkeypatch, strategy):
    monkeypatch.setenv(options.CONFIG_DIR_VARIABLE, str(directory))
    section, name = {
        "http_basic": ("oslo_middleware", "http_basic_auth_user_file"),
        "keystone": ("keystone_authtoken", "auth_type"),
    }[strategy]
    with pytest.raises(SystemExit, match=rf"^placement cannot start: \[{section}\].*{name}.*"):
        start(directory, section, name, strategy)
