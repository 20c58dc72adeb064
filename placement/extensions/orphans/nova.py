"""Servers and migrations of a running nova, read through openstacksdk."""

from __future__ import annotations

import datetime
import email.utils
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from placement import package
from placement.extensions.baremetal.ironic import Unreadable
from placement.extensions.orphans.expected import Expected, NovaServer

#: Microversion of nova's API, from 2019: servers include their flavors (since 2.47) and migrations their uuids (2.59),
#: and servers in a cell that does not respond are listed (2.69).
VERSION = "2.69"
#: States of a migration that may hold resources, in the order in which a migration passes through them.  They are
#: requested in this order so that a migration that proceeds between two requests is not missed.
IN_PROGRESS = (
    *("accepted", "queued", "preparing", "pre-migrating", "running", "running (post-copy)"),
    *("migrating", "post-migrating", "finished", "confirming", "reverting"),
)
#: States of a server with a migration in progress.
MOVING = frozenset({"RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE", "MIGRATING"})
#: An evacuated server holds resources on both hosts until nova-compute restarts on the old one.
EVACUATED: Mapping[str, str] = {"migration_type": "evacuation", "status": "done"}
#: Maximum tolerated difference between the clocks of nova's hosts.
_MARGIN = datetime.timedelta(minutes=5)


class Nova:
    """A client of a running nova."""

    def __init__(self, cloud: str) -> None:
        """Connect to a cloud of ``clouds.yaml``.

        Raises:
            Unreadable: openstacksdk is not installed, or the cloud is unknown.
        """
        try:
            import openstack
            from keystoneauth1 import exceptions as keystoneauth
            from openstack import exceptions
        except ImportError:
            raise Unreadable(f"openstacksdk is not installed: {package.install_command('orphans')}") from None
        self._cloud = cloud
        self._errors = (exceptions.SDKException, exceptions.ConfigException, keystoneauth.ClientException)
        self._raise_for: Callable[[Any], None] = exceptions.raise_from_response
        #: The time of the first request, by nova's clock.
        self._began: datetime.datetime | None = None
        #: Whether a listed server is in a cell that does not respond.
        self._is_partial = False
        try:
            self._compute = openstack.connect(cloud=cloud, app_name="placement-manage").compute
        except self._errors as error:
            raise Unreadable(f"{cloud}: {error}") from error

    def read(self, expected: Expected, advance: Callable[[int], object]) -> None:
        """Add all servers and the migrations in progress to ``expected``.

        Migrations are read first: a later migration changes its server, which ``changed_servers`` then returns.

        Args:
            advance: A callback with 1, for each server.

        Raises:
            Unreadable: The servers or the migrations cannot be read.
        """
        for query in (*({"status": status} for status in IN_PROGRESS), EVACUATED):
            expected.add_migrations(self._pages("/os-migrations", "migrations", "uuid", query))
        for document in self._pages("/servers/detail", "servers", "id", {"all_tenants": "1"}):
            try:
                server = NovaServer.from_document(document)
            except (KeyError, TypeError, ValueError) as error:
                reason = f"{error} is missing" if isinstance(error, KeyError) else error
                raise self._error(f"a server lacks fields that an administrator sees: {reason}") from error
            expected.servers[server.uuid] = server
            self._is_partial |= NovaServer.is_hidden(document)
            advance(1)

    def exists(self, uuid: str) -> bool:
        """Whether nova has a server with this uuid, even a deleted one that can be restored.

        If it is in a cell that does not respond, ``is_partial`` returns True from then on.

        Raises:
            Unreadable: Nova does not respond, or refuses the request.
        """
        path = f"/servers/{uuid}"
        reply = self._send(path, {})
        if reply.status_code == 404:
            # A proxy in front of nova returns a 404 without this key.
            if "itemNotFound" not in self._document(reply, path):
                raise self._error(f"the status 404 of {path} is not from nova")
            return False
        self._check(reply)
        self._is_partial |= NovaServer.is_hidden(self._document(reply, path).get("server", {}))
        return True

    def is_partial(self, expected: Expected, changed: Collection[str]) -> bool:
        """Whether a cell did not respond, so that migrations may be missing.

        nova does not report that.  The signs are listed servers without fields, and servers in a state of ``MOVING``
        without a migration.

        Args:
            expected: The servers and migrations read.
            changed: Servers changed since they were read, whose migrations may have begun or ended.
        """
        moving = {server.uuid for server in expected.servers.values() if server.status in MOVING}
        return self._is_partial or not moving - expected.migrating <= {*changed}

    def changed_servers(self) -> set[str]:
        """Return the uuids of the servers changed or deleted since the first request, or raise Unreadable."""
        since = (self._began or datetime.datetime.now(datetime.UTC)) - _MARGIN
        query = {"all_tenants": "1", "changes-since": since.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return {document["id"] for document in self._pages("/servers/detail", "servers", "id", query)}

    def _pages(self, path: str, key: str, ident: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        marker: str | None = None
        while True:
            reply = self._send(path, {**query, **({"marker": marker} if marker else {})})
            self._check(reply)
            page = self._document(reply, path)
            documents = page.get(key)
            if not isinstance(documents, list) or not all(
                isinstance(document, dict) and document.get(ident) for document in documents
            ):
                raise self._error(f"{path} did not return a document of nova")
            yield from documents
            if not any(link.get("rel") == "next" for link in page.get(f"{key}_links", ())):
                return
            if not documents or documents[-1][ident] == marker:
                raise self._error(f"{path} links to a next page that repeats the last one")
            marker = documents[-1][ident]

    def _send(self, path: str, query: Mapping[str, str]) -> Any:
        try:
            reply = self._compute.get(path, params=query, microversion=VERSION)
        except self._errors as error:
            raise self._error(error) from error
        if self._began is None:
            sent = reply.headers.get("Date")
            self._began = email.utils.parsedate_to_datetime(sent) if sent else datetime.datetime.now(datetime.UTC)
        return reply

    def _check(self, reply: Any) -> None:
        try:
            self._raise_for(reply)
        except self._errors as error:
            raise self._error(error) from error

    def _document(self, reply: Any, path: str) -> Mapping[str, Any]:
        try:
            document = reply.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise self._error(f"{path} did not return a document of nova")
        return document

    def _error(self, reason: object) -> Unreadable:
        return Unreadable(f"nova in cloud {self._cloud} cannot be read: {reason}")
