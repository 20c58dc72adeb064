"""The two clients of the Bare Metal API: python-ironicclient's commands, and openstacksdk."""

from __future__ import annotations

import functools
import json
import os
import secrets
import shlex
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests import preloaded
from tests.servers import Missing

DRIVER = "fake-hardware"


def unique(word: str) -> str:
    """Return a unique name, since tests share a service."""
    return f"{word}-{secrets.token_hex(4)}"


class Commands:
    """`openstack ... baremetal`, each command in its own process, with these options and variables.

    Args:
        options: The options of `openstack`.
        program: `openstack`, or `baremetal`, which has the same commands without the word baremetal.
        first: Python code that runs in the process before the program.
        variables: The variables OS_... of the environment.
    """

    def __init__(self, *options: str, program: str = "openstack", first: str = "", **variables: str) -> None:
        self.options = options
        self._program, self._first, self._variables = program, first, variables

    def run(self, command: str) -> CompletedProcess[str]:
        """Run a command to its end."""
        path = Path(sys.executable).with_name(self._program)
        if not path.exists():
            raise Missing(f"{self._program} is not installed: pip install python-ironicclient python-openstackclient")
        words = [*self.options, *(["baremetal"] if self._program == "openstack" else []), *shlex.split(command)]
        start = f"sys.argv[0] = {str(path)!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
        code = f"{self._first}\nimport runpy, sys; {start}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        return preloaded.client().run([sys.executable, "-c", code, *words], environment | self._variables)

    def do(self, command: str) -> str:
        """Run a command that succeeds, and return its output."""
        completed = self.run(command)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout.strip()

    def show(self, command: str) -> Any:
        """Run a command that succeeds, and return its output as data."""
        return json.loads(self.do(f"{command} -f json"))

    def error_of(self, command: str) -> str:
        """Run a command that fails, and return its error message."""
        completed = self.run(command)
        assert completed.returncode == 1, completed
        return completed.stderr.strip()


class Clients:
    """A Bare Metal service, by the URL of its API, and both clients.

    Attributes:
        openstack: The commands.
        connection: The connection of the SDK, which does not retry after 409 or 503.
        root: The URL of the Placement API of the same service, if it has one.
        database: The URL of its database, if known.
    """

    def __init__(self, url: str, root: str | None = None, database: str | None = None) -> None:
        self.url, self.root, self.database = url, root, database
        self.openstack = Commands("--os-auth-type", "none", "--os-endpoint", url)

    @functools.cached_property
    def connection(self) -> Any:
        return self.connect(baremetal_status_code_retries=0)

    @property
    def baremetal(self) -> Any:
        """The proxy of the SDK."""
        return self.connection.baremetal

    def connect(self, **options: Any) -> Any:
        """Return a connection of the SDK that ignores configuration outside of the test."""
        try:
            import openstack
        except ImportError:
            raise Missing("openstacksdk is not installed: pip install openstacksdk") from None
        defaults: dict[str, Any] = {"auth_type": "none", "endpoint": self.url}
        return openstack.connect(**defaults | {"load_envvars": False, "load_yaml_config": False} | options)

    def enrolled_node(self, resource_class: str, **fields: Any) -> Any:
        """Return a new node that is not a candidate yet."""
        owner = fields.pop("owner", None)
        node = self.baremetal.create_node(**{"driver": DRIVER, "resource_class": resource_class} | fields)
        # Ironic without projects refuses an owner for a new node.
        return self.baremetal.update_node(node, owner=owner) if owner else node

    def available_node(self, resource_class: str, traits: tuple[str, ...] = (), **fields: Any) -> Any:
        """Return a new node that is a candidate."""
        node = self.enrolled_node(resource_class, **fields)
        if traits:
            self.baremetal.set_node_traits(node, list(traits))
        for target in "manage", "provide":
            self.baremetal.set_node_provision_state(node, target, wait=True, timeout=60)
        self.baremetal.set_node_power_state(node, "power on", wait=True, timeout=60)
        return self.baremetal.get_node(node.id)

    def deployed_node(self, resource_class: str, **fields: Any) -> Any:
        """Return a new node in use without an allocation."""
        node = self.available_node(resource_class, **fields)
        return self.baremetal.set_node_provision_state(node, "active", wait=True, timeout=60)

    def active_allocation(self, resource_class: str | None = None, **fields: Any) -> Any:
        """Return a new allocation once it is active."""
        allocation = self.baremetal.create_allocation(resource_class=resource_class, **fields)
        return self.baremetal.wait_for_allocation(allocation, timeout=60)
