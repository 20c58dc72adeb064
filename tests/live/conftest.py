"""The client of operators, and services under web servers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import preloaded, servers
from tests.conftest import missing


@pytest.fixture(scope="session")
def openstack_command():
    """Runs `openstack` with these words, configured by them and the variables: its exit code, stdout and stderr."""
    program = Path(sys.executable).with_name("openstack")
    if not program.exists():
        missing("openstack is not installed: pip install python-openstackclient osc-placement")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}

    def run(words, **variables):
        return preloaded.client().run([str(program), *words], kept | variables)

    return run


@pytest.fixture
def service(started, request):
    """The service of the kind that the parameter names, as the module's ``started`` starts it."""
    try:
        return started(request.param)
    except servers.Missing as reason:
        return missing(reason)
