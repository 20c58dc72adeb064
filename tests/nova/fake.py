"""A fake nova: an HTTP service on the loopback interface whose responses conform to nova's published schemas.

It serves the recorded responses (record.py) with the values of the test, and validates each one before sending it.  It
supports pages with links, versions, and failures requested by a test.
"""

from __future__ import annotations

import contextlib
import copy
import http.server
import itertools
import json
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import jsonschema

from tests.nova.record import REPLIES, SCHEMAS

_SCHEMAS = json.loads(SCHEMAS.read_text())
VALIDATORS = {
    key: jsonschema.Draft202012Validator(_SCHEMAS[key], format_checker=jsonschema.FormatChecker())
    for key in ("servers", "server", "migrations", "version")
}
RECORDED = json.loads(REPLIES.read_text())
HOST, TASK = "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-STS:task_state"
#: The highest version of this nova.
NEWEST = (2, 96)


class Fake:
    """The state of a nova, which tests change, and the requests that it received."""

    def __init__(self) -> None:
        self.servers: dict[str, dict[str, Any]] = {}
        self.migrations: list[dict[str, Any]] = []
        #: Servers that no page shows: soft-deleted ones, or in a cell that does not respond.
        self.hidden: dict[str, dict[str, Any]] = {}
        #: Servers that count as changed after any point in time.
        self.changed: set[str] = set()
        self.page = 3
        self.url = ""
        self.newest = NEWEST
        #: By path, the number of the request that fails (from 1), and the status.
        self.failing: dict[str, tuple[int, int]] = {}
        self.requested: list[str] = []
        #: Responses that violate the schemas.
        self.invalid: list[str] = []
        self._documents = itertools.cycle(server for server in RECORDED["servers"] if "flavor" in server)
        self._moves = itertools.cycle(RECORDED["migrations"])

    def add(self, uuid: str, host: str | None, flavor: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """Add a server at rest, with the recorded values of everything else; return its document."""
        document = copy.deepcopy(next(self._documents))
        document |= {"id": uuid, "status": "ACTIVE", HOST: host, TASK: None, "tenant_id": "red"}
        document["image"] = {"id": uuid, "links": []}
        document["flavor"] |= {"vcpus": 2, "ram": 512, "disk": 20, "ephemeral": 0, "swap": 0, "extra_specs": {}}
        document["flavor"] |= flavor or {}
        document |= fields
        self.servers[uuid] = document
        return document

    def migrate(self, server: str, uuid: str, status: str = "running", kind: str = "live-migration") -> None:
        """Add a migration of a server."""
        document = copy.deepcopy(next(self._moves))
        self.migrations.append(
            {**document, "instance_uuid": server, "uuid": uuid, "status": status, "migration_type": kind}
        )

    def reply(self, path: str, version: str) -> tuple[int, Any]:
        """Return the status and the document for a GET of this path, with its query."""
        self.requested.append(path)
        url = urllib.parse.urlsplit(path)
        query = dict(urllib.parse.parse_qsl(url.query))
        route = url.path.removeprefix("/v2.1")
        if route in ("", "/"):
            return 200, self._valid("version", {"version": self._version()})
        if tuple(map(int, version.removeprefix("compute ").split("."))) > self.newest:
            return 406, {"computeFault": {"code": 406, "message": f"Version {version} is not supported by the API."}}
        if (failure := self._failure(route)) is not None:
            return failure, {"forbidden" if failure == 403 else "computeFault": {"code": failure, "message": "no"}}
        if route == "/servers/detail":
            return self._page("servers", "id", self._selected_servers(query), path, query)
        if route == "/os-migrations":
            keys = ("status", "migration_type")
            migrations = [
                migration
                for migration in self.migrations
                if all(migration[key] == query.get(key, migration[key]) for key in keys)
            ]
            return self._page("migrations", "uuid", migrations, path, query)
        return self._server(route.removeprefix("/servers/"))

    def _version(self) -> dict[str, Any]:
        newest = ".".join(map(str, self.newest))
        links = [{"rel": "self", "href": f"{self.url}/"}]
        more = {"updated": "2013-07-23T11:33:21Z", "media-types": []}
        return {"id": "v2.1", "status": "CURRENT", "version": newest, "min_version": "2.1", "links": links, **more}

    def _failure(self, route: str) -> int | None:
        number, status = self.failing.get(route, (0, 0))
        requests = sum(urllib.parse.urlsplit(path).path == f"/v2.1{route}" for path in self.requested)
        return status if requests == number else None

    def _selected_servers(self, query: dict[str, str]) -> list[dict[str, Any]]:
        if query.get("all_tenants") not in ("1", "True", "true"):
            return []
        servers = [*self.servers.values()]
        if "changes-since" in query:
            servers = [server for server in (*servers, *self.hidden.values()) if server["id"] in self.changed]
        return servers

    def _page(
        self, key: str, ident: str, documents: list[dict[str, Any]], path: str, query: dict[str, str]
    ) -> tuple[int, Any]:
        start = 0
        if "marker" in query:
            places = [place for place, document in enumerate(documents) if document[ident] == query["marker"]]
            if not places:
                return 400, {"badRequest": {"code": 400, "message": f"marker [{query['marker']}] not found"}}
            start = places[0] + 1
        page = documents[start : start + self.page]
        reply: dict[str, Any] = {key: page}
        if len(documents) > start + self.page:
            more = urllib.parse.urlencode({**query, "marker": page[-1][ident]})
            # A nova behind a proxy may not know its public name.
            href = f"http://nova.invalid{urllib.parse.urlsplit(path).path}?{more}"
            reply[f"{key}_links"] = [{"rel": "next", "href": href}]
        return 200, self._valid(key, reply)

    def _server(self, uuid: str) -> tuple[int, Any]:
        server = self.servers.get(uuid) or self.hidden.get(uuid)
        if server is None:
            return 404, {"itemNotFound": {"code": 404, "message": f"Instance {uuid} could not be found."}}
        return 200, self._valid("server", {"server": server})

    def _valid(self, key: str, reply: dict[str, Any]) -> dict[str, Any]:
        self.invalid += [f"{key}: {error.message}" for error in VALIDATORS[key].iter_errors(reply)]
        return reply


@contextlib.contextmanager
def serve() -> Iterator[Fake]:
    """Serve a nova without servers."""
    fake = Fake()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, document = fake.reply(self.path, self.headers.get("OpenStack-API-Version", "compute 2.1"))
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake.url = f"http://127.0.0.1:{server.server_address[1]}/v2.1"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
    assert fake.invalid == []
