"""Records of the Bare Metal API with their nodes, by the responses of a history.

The response to a request for a node shows the state ``allocating``, although the outcome is already decided; a later
read shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jepsen.history import History

_ALLOCATIONS = "/baremetal/v1/allocations"


def records(history: History) -> dict[str, Mapping[str, Any]]:
    """Return the last shown state of each record that has a node or is in error, by uuid."""
    return {
        document["uuid"]: document
        for document in _shown_records(history)
        if document.get("node_uuid") or document.get("state") == "error"
    }


def _shown_records(history: History) -> Iterator[Mapping[str, Any]]:
    for operation in history.operations:
        if operation.succeeded and isinstance(operation.reply, dict) and operation.path.startswith("/baremetal"):
            if "allocations" in operation.reply:
                yield from operation.reply["allocations"]
            elif operation.path.startswith(_ALLOCATIONS) or operation.path.endswith("/allocation"):
                yield operation.reply
