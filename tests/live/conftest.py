"""Fixtures: the command-line client of operators, and services under web servers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import baremetal_clients, preloaded, running, servers
from tests.shells import Shell


@pytest.fixture(scope="session")
def openstack_command():
    """Return a function that runs `openstack` with arguments and variables, and returns the completed process."""
    program = Path(sys.executable).with_name("openstack")
    if not program.exists():
        raise servers.Missing("openstack is not installed: pip install python-openstackclient osc-placement")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}

    def run(words, **variables):
        return preloaded.client().run([str(program), *words], environment | variables)

    return run


@pytest.fixture
def shell(tmp_path, openstack_command):
    """An operator's shell."""
    return Shell(tmp_path, openstack_command)


@pytest.fixture
def service(service_under, request):
    """The service under the web server of the parameter, from the module's fixture ``service_under``."""
    return service_under(request.param)


@pytest.fixture(scope="session")
def clients(backend):
    """The Bare Metal API under uWSGI on each kind of database, and its clients; each test uses its own names.

    With PLACEMENT_TEST_BAREMETAL_URL in the environment the requests go to that service, of any implementation.
    """
    if url := os.environ.get("PLACEMENT_TEST_BAREMETAL_URL"):
        yield baremetal_clients.Clients(url)
        return
    database = backend.create_database()
    with running.uwsgi(database, options={"baremetal": {"enabled": True}}) as service:
        yield baremetal_clients.Clients(f"{service.url}/baremetal", service.url, database)
    backend.drop_database(database)
