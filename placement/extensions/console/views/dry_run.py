"""The answer to a dry run, as a page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

from placement.extensions.console.views.candidates import used_trees
from placement.extensions.console.views.cloud import ProviderName, named
from placement.extensions.console.views.level import ClassLevel
from placement.extensions.console.views.tree import DrawnTree
from placement.index.snapshot import Snapshot

JSONObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """What a write would answer.

    Args:
        status: The status of its reply.
        sentence: Why it would be refused; empty if it would not.
        rooms: The providers that it names or changes, with the room after it; with the present room where it would be
            refused.  Reserved amounts are not in it.
        command: The command that sends the same dry run.
        trees: The trees of the places that the service would choose, with what it takes there; empty where the client
            has chosen.
    """

    status: HTTPStatus
    sentence: str
    rooms: tuple[tuple[ProviderName, tuple[ClassLevel, ...]], ...]
    command: str
    trees: tuple[DrawnTree, ...] = ()

    @property
    def accepts(self) -> bool:
        """Whether the write would succeed."""
        return self.status < HTTPStatus.BAD_REQUEST

    @classmethod
    def of(cls, document: JSONObject, snapshot: Snapshot, command: str) -> Self:
        """Return what the document of a dry run says (docs: api-dry-run)."""
        reply = document["dry_run"]
        rooms = ((_named(snapshot, uuid), _levels(room)) for uuid, room in document["room"].items())
        shown = tuple(sorted(rooms, key=lambda room: room[0].name))
        return cls(HTTPStatus(reply["status"]), _sentence(reply), shown, command, _trees(reply, snapshot))


def _sentence(reply: JSONObject) -> str:
    if reply["status"] < HTTPStatus.BAD_REQUEST:
        return ""
    detail: str = reply["body"]["errors"][0]["detail"]
    # In the Placement API, the first paragraph is the same for every error of this status (docs: api-errors).
    first, _, others = detail.partition("\n\n")
    return (others or first).strip()


def _trees(reply: JSONObject, snapshot: Snapshot) -> tuple[DrawnTree, ...]:
    """Return the trees of what POST /v1/claims would claim; none for the reply to another write."""
    slots = snapshot.by_uuid
    trees: list[DrawnTree] = []
    for result in reply.get("body", {}).get("results", ()):
        held = result.get("allocations", {})
        amounts = {slots[uuid]: of["resources"] for uuid, of in held.items() if uuid in slots}
        mappings: dict[str, list[int]] = {}
        for copy in result.get("mappings", ()):
            for suffix, uuids in copy.items():
                mappings.setdefault(suffix, []).extend(slots[uuid] for uuid in uuids if uuid in slots)
        trees += used_trees(snapshot, amounts, mappings)
    return tuple(trees)


def _named(snapshot: Snapshot, uuid: str) -> ProviderName:
    slot = snapshot.by_uuid.get(uuid)
    return ProviderName(uuid, uuid) if slot is None else named(snapshot, slot)


def _levels(room: Mapping[str, Mapping[str, int]]) -> tuple[ClassLevel, ...]:
    levels = (ClassLevel(name, of["capacity"], 0, of["capacity"], of["used"]) for name, of in room.items())
    return tuple(sorted(levels, key=lambda level: level.resource_class))
