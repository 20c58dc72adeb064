"""Nodes and allocations of a running Ironic, read by openstacksdk."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

from placement import package

#: Seconds that a request may take.
_TIMEOUT = 60
_VARIABLE = "OS_PASSWORD"


class Unreadable(Exception):
    """Ironic cannot be reached, or does not answer as expected; the text says why."""


class Ironic:
    """A running Ironic, or a service with its API."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Connect, as ``--os-cloud`` or ``--endpoint`` say.

        Raises:
            Unreadable: openstacksdk is missing, or the arguments lead nowhere.
        """
        try:
            import openstack
            from keystoneauth1 import exceptions as keystoneauth
            from openstack import exceptions
        except ImportError:
            raise Unreadable(f"openstacksdk is missing: {package.install('baremetal')}") from None
        self._errors = (exceptions.SDKException, exceptions.ConfigException, keystoneauth.ClientException)
        self._missing = exceptions.NotFoundException
        if arguments.os_cloud is not None:
            options: dict[str, Any] = {"cloud": arguments.os_cloud}
        else:
            options = {"load_yaml_config": False, "load_envvars": False, **_endpoint(arguments)}
        try:
            self._connection = openstack.connect(app_name="placement-manage", **options)
        except self._errors as error:
            raise Unreadable(str(error)) from error

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Yield every node, in full; raises Unreadable."""
        return self._documents(lambda: self._connection.baremetal.nodes(details=True))

    def allocations(self) -> Iterator[dict[str, Any]]:
        """Yield every allocation, none for a service that is too old to have any; raises Unreadable."""
        return self._documents(lambda: self._connection.baremetal.allocations(), missing=self._missing)

    def _documents(self, resources: Callable[[], Any], missing: Any = ()) -> Iterator[dict[str, Any]]:
        try:
            for resource in resources():
                yield resource.to_dict(computed=False, original_names=True)
        except missing:
            return
        except self._errors as error:
            raise Unreadable(f"Ironic cannot be read: {error}") from error


def _endpoint(arguments: argparse.Namespace) -> dict[str, Any]:
    options = {"endpoint": arguments.endpoint, "api_timeout": _TIMEOUT}
    if arguments.username is None:
        return {"auth_type": "none", **options}
    password = os.environ.get(_VARIABLE)
    if password is None:
        raise Unreadable(f"The password of {arguments.username} is missing: set ${_VARIABLE}.")
    return {"auth_type": "http_basic", "username": arguments.username, "password": password, **options}
