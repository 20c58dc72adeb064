"""The objects that a run has created, and random values for requests, most of them valid."""

from __future__ import annotations

import dataclasses
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from tools.baremetal.servers import CLASSIC, COMMON, NEWEST, SYMBOL, Reply, Request

#: Minor versions that change something, and their predecessors.
VERSIONS = (*(1, 4, 5, 8, 10, 11, 20, 21, 36, 37, 42, 43, 49, 50, 51, 52, 56, 57, 58, 59, 60, 64, 65, 72, 73, 79, 83),)
VERSIONS += (84, 90, 91, 97, 98, 109, 114, NEWEST)
ODD_VERSIONS = ("latest", "1.116", "1.0", "2.1", "abc", "1", "", "1.x")
TRAITS = ("CUSTOM_FAST", "CUSTOM_BIG", "HW_CPU_X86_VMX", "STORAGE_DISK_SSD")
BAD_TRAITS = ("nope", "custom_x", "CUSTOM_", f"CUSTOM_{'X' * 249}", "", None, 5, "CUSTOM_ä")
PROJECTS = ("p-one", "p-two")
#: The mark of a deleted object, in place of its name.
GONE = object()


@dataclasses.dataclass
class Node:
    uuid: str
    name: str | None
    resource_class: Any


class World:
    """The objects of a run, to which requests refer.

    ``ask`` returns the reference service's document at a path, or None.
    """

    def __init__(self, seed: int, ask: Callable[[str], Any]) -> None:
        self.ask = ask
        self.random = random.Random(seed)
        self.tag = f"{seed:x}"
        #: Two names of the same inventory class, one that differs in case, and an unrelated one.
        self.classes = [f"bm.{self.tag}", f"bm-{self.tag}", f"BM-{self.tag}", f"gold{self.tag}"]
        self.nodes: list[Node] = []
        #: The uuids and names of allocations.
        self.allocations: list[tuple[str, str | None]] = []
        self.instances = [self.uuid() for _ in range(3)]
        self._count = 0

    # -------------------------------------------------------------------------------------------------- the basics

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def symbol(self, kind: str) -> str:
        self._count += 1
        return f"${kind}{self._count}$"

    def new_name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}-{self.tag}"

    def choose(self, good: Sequence[Any], bad: Sequence[Any] = (), odd: float = 0.03) -> Any:
        """Return a good value, or a bad one with the probability ``odd``."""
        return self.random.choice(bad if bad and self.chance(odd) else good)

    def sample(self, values: Sequence[Any], max_size: int) -> list[Any]:
        return self.random.sample(list(values), self.random.randint(0, min(max_size, len(values))))

    # ------------------------------------------------------------------------------------------------------ values

    def resource_class(self) -> Any:
        return self.choose(
            [*self.classes, self.classes[0], self.classes[0]], [f"none-{self.tag}", "", "x" * 80, "x" * 81]
        )

    def traits(self, max_size: int = 2, odd: float = 0.04) -> list[Any]:
        traits = self.sample(TRAITS, max_size)
        if self.chance(0.05):
            traits += traits[:1]
        return [*traits, self.random.choice(BAD_TRAITS)] if self.chance(odd) else traits

    def owner(self) -> Any:
        # No value is too long, because on SQLite the original accepts any length.
        return self.choose([*PROJECTS, *PROJECTS, None], ["", 5])

    def extra(self) -> Any:
        return self.choose([{}, {"a": 1}, {"a": {"b": [1, None]}, "x/y": "z"}, {"ä": "€"}], [None, "x", [], 5])

    def name(self, kind: str) -> Any:
        """Return a name for a new object, which is most often unused."""
        used_names = [node.name for node in self.nodes] + [name for _, name in self.allocations if name]
        bad = ["a b", "x" * 255, "x" * 256, 5, self.uuid(), "ä", "-", ".", "a/b", "a~b", "a_b", "x.json", None]
        if used_names and self.chance(0.15):
            return self.random.choice(used_names)
        return self.choose([self.new_name(kind)], bad, 0.07)

    def node(self) -> str:
        """Return the uuid or name of a node, which most often exists."""
        if not self.nodes or self.chance(0.03):
            return self.random.choice([self.uuid(), "no-such-node", "a b"])
        node = self.random.choice(self.nodes)
        return node.name if node.name and self.chance(0.35) else node.uuid

    def allocation(self) -> str:
        """Return the uuid or name of an allocation, which most often exists."""
        if not self.allocations or self.chance(0.05):
            return self.random.choice([self.uuid(), "no-such-allocation", "a b", "x" * 256])
        uuid, name = self.random.choice(self.allocations[-8:])
        return name if name and self.chance(0.4) else uuid

    def instance(self) -> str:
        """Return a uuid for a node's instance_uuid."""
        return self.random.choice([*self.instances, *self.instances, self.uuid(), self.allocation(), "nope"])

    # ------------------------------------------------------------------------------------------------------- requests

    def request(self, method: str, path: str, body: Any = None, since: int = 1, **more: Any) -> Request:
        """Return a request in a random version, most often one that supports the route."""
        version, headers = self._version(since)
        return Request(method, path, body, version, headers, **more)

    def _version(self, since: int) -> tuple[int | None, dict[str, str]]:
        if self.chance(0.02):
            odd = self.random.choice(ODD_VERSIONS)
            return None, {CLASSIC: odd} if self.chance(0.6) else {COMMON: f"baremetal {odd}"}
        if self.chance(0.01):
            return 1, self.random.choice([{}, {COMMON: "placement 1.10"}, {COMMON: "compute latest"}])
        supported = [version for version in VERSIONS if version >= since or self.chance(0.02)]
        version = NEWEST if self.chance(0.6) else self.random.choice(supported)
        form = self.random.random()
        if form < 0.85:
            return version, {CLASSIC: f"1.{version}"}
        common = {COMMON: f"baremetal 1.{version}"}
        return version, common if form < 0.93 else {CLASSIC: f"1.{self.random.choice(VERSIONS)}", **common}

    def note(self, request: Request, reply: Reply) -> None:
        """Record the objects that a request has created, renamed or removed."""
        document = reply.document
        if request.makes and reply.status == 201 and isinstance(document, dict):
            identity = request.makes if SYMBOL.fullmatch(request.makes) else document["uuid"]
            if request.allocates:
                self.allocations.append((identity, document["name"]))
            else:
                self.nodes.append(Node(identity, document.get("name"), document.get("resource_class")))
        if len(request.route) == 2 and (request.method, reply.status) in (("DELETE", 204), ("PATCH", 200)):
            name = document.get("name") if request.method == "PATCH" and isinstance(document, dict) else GONE
            self._change(*request.route, name)

    def _change(self, collection: str, ident: str, name: Any) -> None:
        if collection == "nodes":
            for node in [node for node in self.nodes if ident in (node.uuid, node.name)]:
                node.name = name
            self.nodes = [node for node in self.nodes if node.name is not GONE]
        if collection == "allocations":
            changed = [(uuid, name if ident in (uuid, old) else old) for uuid, old in self.allocations]
            self.allocations = [entry for entry in changed if entry[1] is not GONE]
