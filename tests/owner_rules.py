"""The owner rules of the Bare Metal API, written from the documentation and not from the code: requests about nodes and
allocations of several projects, and the result for each kind of caller (docs: baremetal-policy, baremetal-owners).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

#: The uuids of the nodes, by their names in the paths of the table.
UUIDS = {f"node_{name}": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ("mine", "leased", "yours", "free")}

#: The projects of the table, as they occur in names of nodes and allocations.
MINE, YOURS, ELSE = "mine", "yours", "else"
#: A consumer of the project "mine", with allocations on a provider that is not a node.
INSTANCE, _ELSEWHERE = "5d0b5a36-6a2c-4a53-9d4f-3ab8a7c3e0f1", "5d0b5a36-6a2c-4a53-9d4f-3ab8a7c3e0f2"

#: Groups of callers: administrators, callers with access to everything, callers who may read everything.
GROUPS = {
    "ADMIN": ("admin", "service", "system-admin"),
    "ALL": ("admin", "service", "system-admin", "system-member"),
    "SEE": ("admin", "service", "system-admin", "system-member", "system-reader"),
}

# The request; its document, a name of `DOCUMENTS`; the status for allowed callers; the allowed callers; other statuses.
# Names of nodes state their owner; "leased" is leased by the project "mine".  A caller that is not listed gets 403.
_TABLE = """
GET    /v1/allocations/mine                -            200 SEE,member,reader                          404:stranger,strange-reader
GET    /v1/allocations/yours               -            200 SEE,stranger,strange-reader                404:member,reader
GET    /v1/allocations/unowned             -            200 SEE                                        404:member,reader,stranger,strange-reader
GET    /v1/nodes/node-mine/allocation      -            200 SEE,member,reader                          400:stranger,strange-reader
GET    /v1/nodes/node-yours/allocation     -            404 SEE,stranger,strange-reader                400:member,reader
GET    /v1/allocations?node=node-leased    -            200 SEE,member,reader                          400:stranger,strange-reader
GET    /v1/allocations?node=node-yours     -            200 SEE,stranger,strange-reader                400:member,reader
GET    /v1/allocations                     -            200 SEE,member,reader,stranger,strange-reader
GET    /v1/allocations?owner={mine}        -            200 SEE,member,reader
GET    /v1/allocations?owner={yours}       -            200 SEE,stranger,strange-reader
PATCH  /v1/allocations/mine                extra        200 ALL,member                                 404:stranger
PATCH  /v1/allocations/yours               extra        200 ALL,stranger                               404:member
PATCH  /v1/allocations/unowned             extra        200 ALL                                        404:member,stranger
PATCH  /v1/allocations/mine                owner        400 ALL,member                                 404:stranger
DELETE /v1/allocations/mine                -            204 ALL,member                                 404:stranger
DELETE /v1/allocations/yours               -            204 ALL,stranger                               404:member
DELETE /v1/allocations/unowned             -            204 ALL                                        404:member,stranger
DELETE /v1/nodes/node-mine/allocation      -            204 ALL,member                                 404:stranger
POST   /v1/allocations                     plain        201 ALL,member,stranger
POST   /v1/allocations                     of-mine      201 ALL,member
POST   /v1/allocations                     of-yours     201 ALL,stranger
POST   /v1/allocations                     on-mine      201 ALL,member                                 400:stranger
POST   /v1/allocations                     on-leased    201 ALL,member                                 400:stranger
POST   /v1/allocations                     on-yours     201 ALL,stranger                               400:member
POST   /v1/allocations                     on-free      201 ALL                                        400:member,stranger
POST   /v1/allocations                     backfill     409 ALL,member                                 400:stranger
GET    /v1/nodes                           -            200 SEE,member,reader,stranger,strange-reader
GET    /v1/nodes/detail                    -            200 SEE,member,reader,stranger,strange-reader
GET    /v1/nodes?marker={node_leased}      -            200 SEE,member,reader                          404:stranger,strange-reader
GET    /v1/nodes?marker={node_yours}       -            200 SEE,stranger,strange-reader                404:member,reader
GET    /v1/nodes/detail?marker={node_free} -            200 SEE                                        404:member,reader,stranger,strange-reader
GET    /v1/nodes/node-mine                 -            200 SEE,member,reader                          404:stranger,strange-reader
GET    /v1/nodes/node-leased               -            200 SEE,member,reader                          404:stranger,strange-reader
GET    /v1/nodes/node-yours                -            200 SEE,stranger,strange-reader                404:member,reader
GET    /v1/nodes/node-free                 -            200 SEE                                        404:member,reader,stranger,strange-reader
GET    /v1/nodes/node-leased/states        -            200 SEE,member,reader                          404:stranger,strange-reader
GET    /v1/nodes/node-leased/validate      -            200 SEE,member,reader                          404:stranger,strange-reader
GET    /v1/nodes/node-leased/traits        -            200 SEE,member,reader                          404:stranger,strange-reader
POST   /v1/nodes                           node         201 ADMIN
PATCH  /v1/nodes/node-mine                 extra        200 ALL,member                                 404:stranger
PATCH  /v1/nodes/node-leased               extra        200 ALL                                        404:stranger
PATCH  /v1/nodes/node-mine                 owner        200 ALL                                        404:stranger
PATCH  /v1/nodes/node-mine                 lessee       200 ALL                                        404:stranger
PATCH  /v1/nodes/node-mine                 below-leased 200 ALL,member                                 404:stranger
PATCH  /v1/nodes/node-mine                 below-yours  200 ALL                                        400:member 404:stranger
PATCH  /v1/nodes/node-yours                instance     200 ALL        409:stranger                    404:member
PUT    /v1/nodes/node-mine/maintenance     reason       202 ALL,member                                 404:stranger
PUT    /v1/nodes/node-leased/maintenance   reason       202 ALL                                        404:stranger
DELETE /v1/nodes/node-mine/maintenance     -            202 ALL,member                                 404:stranger
DELETE /v1/nodes/node-leased/maintenance   -            202 ALL                                        404:stranger
PUT    /v1/nodes/node-mine/states/power    power-on     202 ALL,member                                 404:stranger
PUT    /v1/nodes/node-leased/states/power  power-on     202 ALL,member                                 404:stranger
PUT    /v1/nodes/node-mine/states/provision   manage    202 ALL,member                                 404:stranger
PUT    /v1/nodes/node-leased/states/provision manage    202 ALL,member                                 404:stranger
PUT    /v1/nodes/node-mine/traits          traits       204 ALL,member                                 404:stranger
PUT    /v1/nodes/node-leased/traits        traits       204 ALL                                        404:stranger
PUT    /v1/nodes/node-mine/traits/CUSTOM_B -            204 ALL,member                                 404:stranger
DELETE /v1/nodes/node-mine/traits/CUSTOM_A -            204 ALL,member                                 404:stranger
DELETE /v1/nodes/node-leased/traits        -            204 ALL                                        404:stranger
DELETE /v1/nodes/node-mine/traits          -            204 ALL,member                                 404:stranger
DELETE /v1/nodes/node-free                 -            204 ADMIN
GET    /v1/drivers                         -            200 SEE,member,reader,stranger,strange-reader
"""  # noqa: E501

DOCUMENTS: dict[str, Any] = {
    "-": None,
    "extra": [{"op": "add", "path": "/extra/a", "value": 1}],
    "owner": [{"op": "add", "path": "/owner", "value": "{yours}"}],
    "lessee": [{"op": "add", "path": "/lessee", "value": "{yours}"}],
    "below-leased": [{"op": "add", "path": "/parent_node", "value": "node-leased"}],
    "below-yours": [{"op": "add", "path": "/parent_node", "value": "node-yours"}],
    "instance": [{"op": "add", "path": "/instance_uuid", "value": INSTANCE}],
    "plain": {"resource_class": "none"},
    "of-mine": {"resource_class": "none", "owner": "{mine}"},
    "of-yours": {"resource_class": "none", "owner": "{yours}"},
    "on-mine": {"resource_class": "none", "candidate_nodes": ["node-mine"]},
    "on-leased": {"resource_class": "none", "candidate_nodes": ["node-leased"]},
    "on-yours": {"resource_class": "none", "candidate_nodes": ["node-yours"]},
    "on-free": {"resource_class": "none", "candidate_nodes": ["node-free"]},
    "backfill": {"node": "node-leased"},
    "node": {"driver": "fake-hardware", "name": "another"},
    "reason": {"reason": "r"},
    "power-on": {"target": "power on"},
    "manage": {"target": "manage"},
    "traits": {"traits": ["CUSTOM_B"]},
}

#: Documents of writes that change the responses to other requests of the table; deletions do, too.
_LASTING = {"owner", "lessee", "instance", "below-leased", "below-yours", "node", "manage", "traits"}


class Row(NamedTuple):
    """A request, and the status that each caller gets; 403 for the others."""

    method: str
    path: str
    document: str
    statuses: Mapping[str, int]

    def status(self, caller: str) -> int:
        return self.statuses.get(caller, 403)


def _callers(names: str) -> Iterator[str]:
    for name in names.split(","):
        yield from GROUPS.get(name, (name,))


def _row(line: str) -> Row:
    method, path, document, status, allowed, *hidden = line.split()
    statuses = dict.fromkeys(_callers(allowed), int(status))
    for entry in hidden:
        other, _, names = entry.partition(":")
        statuses |= dict.fromkeys(_callers(names), int(other))
    return Row(method, path, document, statuses)


ROWS = [_row(line) for line in _TABLE.strip().splitlines()]

#: The contents of lists of nodes and allocations for each caller.
_EVERYTHING = {"node-mine", "node-leased", "node-yours", "node-free"}, {"mine", "yours", "unowned"}
LISTS = {
    **dict.fromkeys(GROUPS["SEE"], _EVERYTHING),
    **dict.fromkeys(("member", "reader"), ({"node-mine", "node-leased"}, {"mine"})),
    **dict.fromkeys(("stranger", "strange-reader"), ({"node-yours"}, {"yours"})),
}


class Caller:
    """A caller that sends requests with fixed headers, at the newest version, over one connection."""

    def __init__(self, connection: http.client.HTTPConnection, headers: Mapping[str, str]) -> None:
        self._connection = connection
        self._headers = {"X-OpenStack-Ironic-API-Version": "1.115", **headers}

    def ask(self, method: str, path: str, document: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and document of the response."""
        content = None if document is None else json.dumps(document)
        return self._answer(method, f"/baremetal{path}", content, self._headers | headers)

    def ask_placement(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """Like ``ask``, for a request to the Placement API by an administrator of noauth2."""
        versions = {"OpenStack-API-Version": "placement 1.39", "Content-Type": "application/json"}
        content = None if document is None else json.dumps(document)
        return self._answer(method, path, content, {"X-Auth-Token": "admin", **versions})

    def _answer(self, method: str, path: str, content: str | None, headers: Mapping[str, str]) -> tuple[int, Any]:
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text else None


@contextlib.contextmanager
def calling(port: int, headers: Mapping[str, str]) -> Iterator[Caller]:
    """Provide a caller with these headers."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        yield Caller(connection, headers)


class World:
    """The nodes and allocations of the table.

    Args:
        admin: An administrator.
        projects: The ids of the projects, by their names in the table.
    """

    def __init__(self, admin: Caller, projects: Mapping[str, str]) -> None:
        self._admin, self._projects = admin, projects
        self._names = {**projects, **UUIDS}
        stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}
        claim = {
            "allocations": {_ELSEWHERE: {"resources": {"VCPU": 1}}},
            "project_id": projects[MINE],
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        for method, path, document in (
            ("POST", "/resource_providers", {"uuid": _ELSEWHERE, "name": "elsewhere"}),
            ("PUT", f"/resource_providers/{_ELSEWHERE}/inventories", stock),
            ("PUT", f"/allocations/{INSTANCE}", claim),
        ):
            status, answer = admin.ask_placement(method, path, document)
            assert status < 300, (method, path, answer)

    def put_back(self) -> None:
        """Delete everything, and create it again."""
        for record in self._do("GET", "/v1/allocations")["allocations"]:
            self._do("DELETE", f"/v1/allocations/{record['uuid']}")
        for node in self._do("GET", "/v1/nodes?include_children=True")["nodes"]:
            if node["instance_uuid"] is not None:
                self._do("PATCH", f"/v1/nodes/{node['uuid']}", [{"op": "remove", "path": "/instance_uuid"}])
            self._do("DELETE", f"/v1/nodes/{node['uuid']}")
        for name, owner, lessee in (
            ("mine", MINE, None),
            ("leased", ELSE, MINE),
            ("yours", YOURS, None),
            ("free", None, None),
        ):
            projects = {"owner": owner and self._projects[owner], "lessee": lessee and self._projects[lessee]}
            self._do(
                "POST",
                "/v1/nodes",
                {
                    "uuid": UUIDS[f"node_{name}"],
                    "driver": "fake-hardware",
                    "name": f"node-{name}",
                    "resource_class": "box",
                    **projects,
                },
            )
        for target in ("manage", "provide"):
            self._do("PUT", "/v1/nodes/node-mine/states/provision", {"target": target})
        self._do("PUT", "/v1/nodes/node-mine/states/power", {"target": "power on"})
        self._do("PUT", "/v1/nodes/node-mine/traits", {"traits": ["CUSTOM_A"]})
        for name, resource_class, owner in (("mine", "box", MINE), ("yours", "none", YOURS), ("unowned", "none", None)):
            allocation = {"name": name, "resource_class": resource_class, "owner": owner and self._projects[owner]}
            self._do("POST", "/v1/allocations", allocation)

    def ask(self, caller: Caller, row: Row) -> int:
        """Return the status of the response to a request of the table; undo changes that affect the others."""
        document = _fill_in(DOCUMENTS[row.document], self._names)
        status, _ = caller.ask(row.method, _fill_in(row.path, self._names), document)
        if status < 300 and (row.method == "DELETE" or row.document in _LASTING):
            self.put_back()
        return status

    def _do(self, method: str, path: str, document: Any = None) -> Any:
        status, answer = self._admin.ask(method, path, document)
        assert status < 300, (method, path, answer)
        return answer


def _fill_in(value: Any, ids: Mapping[str, str]) -> Any:
    """Return a value of the table with the ids of projects and nodes filled in."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: ids[match[1]], value)
    if isinstance(value, dict):
        return {name: _fill_in(member, ids) for name, member in value.items()}
    return [_fill_in(member, ids) for member in value] if isinstance(value, list) else value


def check(world: World, caller: Caller, kind: str) -> None:
    """Raise unless a caller gets the statuses of the table, and lists with the permitted contents."""
    wrong = {}
    for row in ROWS:
        status = world.ask(caller, row)
        if status != row.status(kind):
            wrong[f"{row.method} {row.path} {row.document}"] = (status, row.status(kind))
    assert wrong == {}
    if kind in LISTS:
        world.put_back()
        nodes, records = LISTS[kind]
        for path in ("/v1/nodes", "/v1/nodes/detail"):
            assert {node["name"] for node in caller.ask("GET", path)[1]["nodes"]} == nodes
        assert {record["name"] for record in caller.ask("GET", "/v1/allocations")[1]["allocations"]} == records
