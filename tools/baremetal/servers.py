"""A client of one service of the Bare Metal API, which waits for the background work of requests."""

from __future__ import annotations

import dataclasses
import http.client
import json
import re
import time
import urllib.parse
import uuid
from typing import Any, NamedTuple

NEWEST = 115
#: A symbol for a uuid that the service generates; each service maps it to its own uuid.
SYMBOL = re.compile(r"\$[a-z]\d+\$")
CLASSIC = "X-OpenStack-Ironic-API-Version"
COMMON = "OpenStack-API-Version"
#: Seconds to wait for the background work of a request.
_TIMEOUT = 60.0
#: Attempts at a request on a locked node.
_ATTEMPTS = 20
#: Seconds between two polls.
_POLL_INTERVAL = 0.03
_AT_REST = "reservation,provision_state,target_provision_state,target_power_state"


@dataclasses.dataclass(frozen=True)
class Request:
    """A request.  Its path and body may contain symbols, which are replaced by uuids of the service."""

    method: str
    path: str
    #: A document, or the text of a body.
    body: Any = None
    #: The minor version; None if the headers contain no valid one.
    version: int | None = NEWEST
    headers: dict[str, str] = dataclasses.field(default_factory=lambda: {CLASSIC: f"1.{NEWEST}"})
    #: The uuid, or the symbol for the uuid, of the object that a successful request creates.
    makes: str | None = None

    @property
    def route(self) -> list[str]:
        """The segments of the path below ``/v1``."""
        segments = [segment for segment in self.path.partition("?")[0].split("/") if segment]
        return segments[1:] if segments[:1] == ["v1"] else segments

    @property
    def allocates(self) -> bool:
        """Whether it requests an allocation."""
        return self.method == "POST" and self.route == ["allocations"]

    @property
    def query(self) -> list[tuple[str, str]]:
        return urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True)

    def __str__(self) -> str:
        versions = ", ".join(f"{name}: {value}" for name, value in self.headers.items() if name in (CLASSIC, COMMON))
        body = "" if self.body is None else f"  {self.body if isinstance(self.body, str) else json.dumps(self.body)}"
        return f"{self.method} {self.path}  [{versions or 'no version'}]{body}"


class Reply(NamedTuple):
    status: int
    #: The headers, with lowercase names.
    headers: dict[str, str]
    text: str

    @property
    def document(self) -> Any:
        """The parsed body; None if it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class Server:
    """A running service.  ``symbols`` maps each symbol to the uuid that the service has generated."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.base = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=120)
        self.symbols: dict[str, str] = {}

    def send(self, request: Request) -> Reply:
        """Send a request, and repeat it while background work has its node locked."""
        for _ in range(_ATTEMPTS):
            reply = self._send(request)
            if reply.status != 409 or "is locked by host" not in reply.text:
                break
            time.sleep(0.2)
        if request.makes and SYMBOL.fullmatch(request.makes) and reply.status == 201:
            self.symbols[request.makes] = reply.document["uuid"]
        return reply

    def get(self, path: str) -> Any:
        """Return the document at a path in the newest version; None if the status is not 200."""
        reply = self._send(Request("GET", path))
        return reply.document if reply.status == 200 else None

    def substitute(self, text: str) -> str:
        """Return the text with symbols replaced by their uuids; an unknown symbol becomes an unused uuid."""
        return SYMBOL.sub(lambda match: self.symbols.get(match[0]) or unknown(match[0]), text)

    def finish(self, request: Request, reply: Reply) -> Any:
        """Wait for the background work of a request; return the document of the allocation that it created, if any."""
        if request.allocates and reply.status == 201:
            path = f"/v1/allocations/{reply.document['uuid']}"
            allocation = self._await_document(path, lambda document: document["state"] != "allocating")
            if allocation and allocation["node_uuid"]:
                self._await_node(allocation["node_uuid"])
            return allocation
        if reply.status == 202 and request.route[:1] == ["nodes"]:
            self._await_node(self.substitute(request.route[1]))
        return None

    def wipe(self) -> None:
        """Delete all nodes and allocations."""
        for node in (self.get("/v1/nodes?fields=uuid") or {"nodes": []})["nodes"]:
            self._send(Request("PUT", f"/v1/nodes/{node['uuid']}/maintenance", {}))
            self.send(Request("DELETE", f"/v1/nodes/{node['uuid']}"))
        for allocation in self.allocations():
            self.send(Request("DELETE", f"/v1/allocations/{allocation}"))
        self.symbols.clear()

    def allocations(self) -> list[str]:
        """Return the uuids of all allocations."""
        return [allocation["uuid"] for allocation in self.get("/v1/allocations?fields=uuid")["allocations"]]

    def _await_node(self, uuid: str) -> None:
        busy = ("reservation", "target_provision_state", "target_power_state")
        # A failed node keeps its target, so that only its lock matters.
        self._await_document(
            f"/v1/nodes/{uuid}?fields={_AT_REST}",
            lambda node: (
                not any(node[name] for name in busy)
                or (not node["reservation"] and node["provision_state"].endswith(("failed", "error")))
            ),
        )

    def _await_document(self, path: str, ready: Any) -> Any:
        """Return the document as soon as it is ready; None if it does not exist."""
        deadline = time.monotonic() + _TIMEOUT
        while document := self.get(path):
            if ready(document):
                return document
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.base}{path} is still busy after {_TIMEOUT:g} seconds: {document}")
            time.sleep(_POLL_INTERVAL)
        return None

    def _send(self, request: Request) -> Reply:
        headers = {"Accept": "application/json", **request.headers}
        body = None
        if request.body is not None:
            body = self.substitute(request.body if isinstance(request.body, str) else json.dumps(request.body)).encode()
            headers.setdefault("Content-Type", "application/json")
        for attempt in (1, 2):  # the service may have closed a kept connection
            try:
                self._connection.request(request.method, self._prefix + self.substitute(request.path), body, headers)
                response = self._connection.getresponse()
                text = response.read().decode()
                return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, text)
            except (http.client.HTTPException, ConnectionError):
                self._connection.close()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")


def unknown(symbol: str) -> str:
    """Return an unused uuid for a symbol of an object that does not exist."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, symbol))
