"""The result of a dry run for display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

from placement.extensions.console.views.candidates import used_trees
from placement.extensions.console.views.cloud import ProviderName, provider_name
from placement.extensions.console.views.level import ClassLevel
from placement.extensions.console.views.tree import DrawnTree
from placement.index.snapshot import Snapshot

JSONObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The response that a write would receive.

    Attributes:
        status: The HTTP status.
        sentence: The reason for a refusal; empty if the write would succeed.
        capacities: The providers that the write names or changes, with their levels after the write, or with the
            current levels if it would be refused.  Reserved amounts are left out.
        command: The command that sends the same dry run.
        trees: The trees that the service would choose, with the amounts taken; empty if the client chose.
    """

    status: HTTPStatus
    sentence: str
    capacities: tuple[tuple[ProviderName, tuple[ClassLevel, ...]], ...]
    command: str
    trees: tuple[DrawnTree, ...] = ()

    @property
    def accepts(self) -> bool:
        """Whether the write would succeed."""
        return self.status < HTTPStatus.BAD_REQUEST

    @classmethod
    def from_document(cls, document: JSONObject, snapshot: Snapshot, command: str) -> Self:
        """Return the result from the document of a dry run (docs: api-dry-run)."""
        reply = document["dry_run"]
        capacities = ((_name(snapshot, uuid), _levels(room)) for uuid, room in document["room"].items())
        by_name = tuple(sorted(capacities, key=lambda pair: pair[0].name))
        return cls(HTTPStatus(reply["status"]), _sentence(reply), by_name, command, _trees(reply, snapshot))


def _sentence(reply: JSONObject) -> str:
    if reply["status"] < HTTPStatus.BAD_REQUEST:
        return ""
    detail: str = reply["body"]["errors"][0]["detail"]
    # In the Placement API, the first paragraph only repeats the status (docs: api-errors).
    first, _, explanation = detail.partition("\n\n")
    return (explanation or first).strip()


def _trees(reply: JSONObject, snapshot: Snapshot) -> tuple[DrawnTree, ...]:
    """Return the trees that POST /v1/claims would allocate from; empty for any other write."""
    slots = snapshot.by_uuid
    trees: list[DrawnTree] = []
    for result in reply.get("body", {}).get("results", ()):
        allocations = result.get("allocations", {})
        amounts = {slots[uuid]: allocation["resources"] for uuid, allocation in allocations.items() if uuid in slots}
        mappings: dict[str, list[int]] = {}
        for copy in result.get("mappings", ()):
            for suffix, uuids in copy.items():
                mappings.setdefault(suffix, []).extend(slots[uuid] for uuid in uuids if uuid in slots)
        trees += used_trees(snapshot, amounts, mappings)
    return tuple(trees)


def _name(snapshot: Snapshot, uuid: str) -> ProviderName:
    slot = snapshot.by_uuid.get(uuid)
    return ProviderName(uuid, uuid) if slot is None else provider_name(snapshot, slot)


def _levels(amounts_by_class: Mapping[str, Mapping[str, int]]) -> tuple[ClassLevel, ...]:
    levels = (
        ClassLevel(name, amounts["capacity"], 0, amounts["capacity"], amounts["used"])
        for name, amounts in amounts_by_class.items()
    )
    return tuple(sorted(levels, key=lambda level: level.resource_class))
