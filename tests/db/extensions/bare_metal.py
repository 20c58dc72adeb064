"""Nodes, requests for nodes, claims and a client of the routes, for the tests of the Bare Metal API."""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import deploy
from placement.db.database import Database
from placement.db.schema.tables import utcnow
from placement.db.writes.transaction import Transaction
from placement.extensions.baremetal.objects import placing, record_page
from placement.extensions.baremetal.objects.keyset import Paging
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.placing import NodeRequest
from placement.extensions.baremetal.objects.record import Record
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.provider import ResourceProvider
from placement.policy import Policy
from tests import apis, web
from tests.caller import Answer

#: Nodes.
NODE, OTHER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0aa", "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0bb"
#: Consumers.
ME, YOU = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
#: The owners of consumers created by the Bare Metal API and by a Placement client.
OWNER, CLIENT_OWNER = Owner("project", "user", "BAREMETAL"), Owner("project", "user")
#: A date in a document.
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
_AVAILABLE = {"driver": "fake", "resource_class": "bm", "provision_state": "available", "power_state": "power on"}


def request(**columns: Any) -> Record:
    """Return a request for any node of the class ``bm``, with more conditions in ``columns``."""
    defaults = {"name": None, "resource_class": "bm", "traits": [], "candidate_nodes": [], "extra": {}, "owner": None}
    return Record(**{**defaults, "uuid": str(uuid.uuid4()), "created_at": utcnow(), **columns})


def claim(
    database: Database, consumer: str, resources: Mapping[str, Mapping[str, int]], owner: Owner = CLIENT_OWNER
) -> None:
    """Claim amounts by provider and class, like a Placement client; without providers, end the consumer."""
    holding = database.read(lambda db: Holding.find(db, consumer))
    new_claim = Claim(consumer, resources, owner, generation=holding.generation if holding else None)
    database.write(lambda db: ClaimSet(db, [new_claim]).place())


def inventories(database: Database, node: str = NODE) -> dict[str, tuple[int, int]]:
    """Return the total and the reserved amount by class."""
    stored_inventories = database.read(lambda db: Inventory.of_provider(db, ResourceProvider.get(db, node)))
    return {inventory.resource_class: (inventory.total, inventory.reserved) for inventory in stored_inventories}


class Nodes:
    """Nodes in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def node(self, name: str | None = None, *, traits: Iterable[str] = (), **columns: Any) -> str:
        """Create a node, available unless ``columns`` state otherwise, and return its uuid."""
        node = str(uuid.uuid4())

        def work(db: Transaction) -> None:
            locked_node = LockedNode.create(db, node, **{**_AVAILABLE, "name": name, **columns})
            if traits:
                locked_node.replace_traits(traits)

        self.database.write(work)
        return node

    def change(self, node: str, **columns: Any) -> None:
        self.database.write(lambda db: LockedNode.lock(db, node).update(**columns))

    def read(self, node: str) -> Node:
        return self.database.read(lambda db: Node.get(db, node))


class Metal(Nodes):
    """Nodes in a database, and their allocations, without the routes."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.index = LiveIndex(database)

    def allocate(self, **columns: Any) -> Record | None:
        """Process a request for a node; return its record."""
        node_request = request(**columns)
        NodeRequest(self.database, self.index, node_request, OWNER, attempts=10).place()
        return self.record(node_request.uuid)

    def backfill(self, node: str, **columns: Any) -> Record:
        def work(db: Transaction) -> Record:
            node_request = request(**{"resource_class": "", **columns})
            return placing.backfill(db, Node.get(db, node), node_request, OWNER, keep_holder="uuid" not in columns)

        return self.database.write(work)

    def end(self, ident: str) -> None:
        self.database.write(lambda db: placing.end(db, Record.get(db, ident)))

    def record(self, ident: str) -> Record | None:
        return self.database.read(lambda db: Record.find(db, ident))

    def page(
        self, limit: int = 1000, sort_key: str = "id", *, descending: bool = False, **options: Any
    ) -> Sequence[sa.Row[Any]]:
        paging = Paging(limit, None, sort_key, descending)
        return self.database.read(lambda db: record_page.read(db, paging, **options))

    def claim(self, consumer: str, *nodes: str, resource_class: str = "CUSTOM_BM") -> None:
        """Claim a unit of each node, like a Placement client; without nodes, end the consumer."""
        claim(self.database, consumer, {node: {resource_class: 1} for node in nodes})


class Client(Nodes):
    """A client of the routes of the whole service."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        conf = web.configuration(baremetal__enabled=True)
        rules = [rule for api in apis.ALL for rule in api.rules]
        service = Service(conf, database, Policy(conf, rules), LiveIndex(database), apis.ALL)
        self.application = deploy.assemble(service)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        version: str = "1.115",
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        prefix: str = "/baremetal/v1",
    ) -> Answer:
        """Send a request without credentials; ``raw`` replaces the body."""
        path, _, query = path.partition("?")
        content = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": prefix + path,
            "QUERY_STRING": query,
            "SERVER_NAME": "metal",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "metal",
            "HTTP_X_OPENSTACK_IRONIC_API_VERSION": version,
            "CONTENT_LENGTH": str(len(content)),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(content),
            "wsgi.errors": io.StringIO(),
            **(headers or {}),
        }
        started: list[tuple[str, list[tuple[str, str]]]] = []
        chunks = self.application(environ, lambda status, headers, *_error: started.append((status, headers)))
        content, (status, replied) = b"".join(chunks), started[0]
        document = json.loads(content) if content else None
        if isinstance(document, dict) and "error_message" in document:
            document = json.loads(document["error_message"])
        return Answer(int(status.split()[0]), document, {name.lower(): value for name, value in replied})

    def create_allocation(self, **body: Any) -> Any:
        """Create an allocation; return its document once its state is final."""
        answer = self("POST", "/allocations", {"resource_class": "bm", **body})
        assert answer.status == 201, answer
        return self("GET", f"/allocations/{answer.body['uuid']}").body
