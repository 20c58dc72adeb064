"""Nodes and allocations of a running Ironic, read through openstacksdk."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

from placement import package

#: Seconds to wait for a response.
_TIMEOUT = 60
#: The environment variable with the password.
_VARIABLE = "OS_PASSWORD"


class Unreadable(Exception):
    """Ironic cannot be reached or sends an unexpected response; the text is the reason."""


class Ironic:
    """A client of a running Ironic service, or of a service with the same API."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Connect according to ``--os-cloud`` or ``--endpoint``.

        Raises:
            Unreadable: openstacksdk is not installed, or the connection failed.
        """
        try:
            import openstack
            from keystoneauth1 import exceptions as keystoneauth
            from openstack import exceptions
        except ImportError:
            raise Unreadable(f"openstacksdk is not installed: {package.install_command('baremetal')}") from None
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
        """Yield every node, in full, or raise Unreadable."""
        return self._documents(lambda: self._connection.baremetal.nodes(details=True))

    def allocations(self) -> Iterator[dict[str, Any]]:
        """Yield every allocation, or nothing from a service too old to support allocations, or raise Unreadable."""
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
