"""A service of the Bare Metal API: sends calls and waits until their work in the background has ended."""

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
#: A uuid that a service chooses itself; each service has its own for the same symbol.
SYMBOL = re.compile(r"\$[a-z]\d+\$")
CLASSIC = "X-OpenStack-Ironic-API-Version"
COMMON = "OpenStack-API-Version"
#: How long to wait for the work of a call, and how often to repeat one that meets a locked node.
_SECONDS, _TRIES = 60.0, 20
_POLL = 0.03
_AT_REST = "reservation,provision_state,target_provision_state,target_power_state"


@dataclasses.dataclass(frozen=True)
class Call:
    """A request.  Its path and body may contain symbols, which each service replaces by a uuid."""

    method: str
    path: str
    #: A document, or the text of a body that is no JSON.
    body: Any = None
    #: The minor version; None if the headers have none or an odd one.
    version: int | None = NEWEST
    headers: dict[str, str] = dataclasses.field(default_factory=lambda: {CLASSIC: f"1.{NEWEST}"})
    #: The uuid, or the symbol for the uuid, of what a successful call creates.
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
    #: With lowercase names.
    headers: dict[str, str]
    text: str

    @property
    def document(self) -> Any:
        """The parsed body; None if there is none or it is no JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class Server:
    """A running service.  ``symbols`` has the uuid that it gave for each symbol."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.base = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=120)
        self.symbols: dict[str, str] = {}

    def call(self, call: Call) -> Reply:
        """Send a call; repeat it while a node that it needs is locked by work in the background."""
        for _ in range(_TRIES):
            reply = self._send(call)
            if reply.status != 409 or "is locked by host" not in reply.text:
                break
            time.sleep(0.2)
        if call.makes and SYMBOL.fullmatch(call.makes) and reply.status == 201:
            self.symbols[call.makes] = reply.document["uuid"]
        return reply

    def get(self, path: str) -> Any:
        """Return the document at a path, at the newest version; None if there is none."""
        reply = self._send(Call("GET", path))
        return reply.document if reply.status == 200 else None

    def put_in(self, text: str) -> str:
        """Return the text with uuids in place of symbols; one without a uuid gets one that nothing has."""
        return SYMBOL.sub(lambda found: self.symbols.get(found[0]) or unknown(found[0]), text)

    def finish(self, call: Call, reply: Reply) -> Any:
        """Wait until the work of a call has ended; return the document of the allocation that it made, if any."""
        if call.allocates and reply.status == 201:
            path = f"/v1/allocations/{reply.document['uuid']}"
            made = self._awaited(path, lambda allocation: allocation["state"] != "allocating")
            if made and made["node_uuid"]:
                self._await_node(made["node_uuid"])
            return made
        if reply.status == 202 and call.route[:1] == ["nodes"]:
            self._await_node(self.put_in(call.route[1]))
        return None

    def wipe(self) -> None:
        """Delete all nodes and allocations."""
        for node in (self.get("/v1/nodes?fields=uuid") or {"nodes": []})["nodes"]:
            self._send(Call("PUT", f"/v1/nodes/{node['uuid']}/maintenance", {}))
            self.call(Call("DELETE", f"/v1/nodes/{node['uuid']}"))
        for allocation in self.allocations():
            self.call(Call("DELETE", f"/v1/allocations/{allocation}"))
        self.symbols.clear()

    def allocations(self) -> list[str]:
        """Return the uuids of all allocations."""
        return [found["uuid"] for found in self.get("/v1/allocations?fields=uuid")["allocations"]]

    def _await_node(self, node: str) -> None:
        rest = ("reservation", "target_provision_state", "target_power_state")
        # A node that failed keeps its target: then only the lock matters.
        self._awaited(
            f"/v1/nodes/{node}?fields={_AT_REST}",
            lambda found: (
                not any(found[name] for name in rest)
                or (not found["reservation"] and found["provision_state"].endswith(("failed", "error")))
            ),
        )

    def _awaited(self, path: str, ready: Any) -> Any:
        """Return the document as soon as it is ready; None if it is gone."""
        end = time.monotonic() + _SECONDS
        while document := self.get(path):
            if ready(document):
                return document
            if time.monotonic() > end:
                raise RuntimeError(f"{self.base}{path} is not at rest after {_SECONDS:g} seconds: {document}")
            time.sleep(_POLL)
        return None

    def _send(self, call: Call) -> Reply:
        headers = {"Accept": "application/json", **call.headers}
        body = None
        if call.body is not None:
            body = self.put_in(call.body if isinstance(call.body, str) else json.dumps(call.body)).encode()
            headers.setdefault("Content-Type", "application/json")
        for attempt in (1, 2):  # the service may have closed a kept connection
            try:
                self._connection.request(call.method, self._prefix + self.put_in(call.path), body, headers)
                response = self._connection.getresponse()
                text = response.read().decode()
                return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, text)
            except (http.client.HTTPException, ConnectionError):
                self._connection.close()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")


def unknown(symbol: str) -> str:
    """Return a uuid for a symbol that stands for nothing."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, symbol))
