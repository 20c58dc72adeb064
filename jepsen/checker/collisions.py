"""Check of collisions: no request is refused merely because of concurrent requests.

The service retries a write that collides with others up to ten times (docs/reliability.rst, "Concurrent writers"), so a
client sees a collision only after ten losses in a row, or after a minute.  Collisions share the code
``placement.concurrent_update`` with generation conflicts; only the texts differ.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping

from jepsen.checker.replies import healed_at
from jepsen.history import History, Operation
from jepsen.violation import Violation

#: Texts of ``errors.TooManyConflicts`` and its subclasses.
_COLLIDED = re.compile(
    r"collided with others too many times|Max retries of DB transaction exceeded|changed while attempting to allocate"
)
#: Largest fraction of requests that may be refused for collisions, by route; 0 for others.  No route needs one: all
#: writers lock in one order, so the loser of a race retries and waits for its locks.
CEILINGS: Mapping[tuple[str, str], float] = {}
#: Largest fraction for all routes of a cluster.  If all nodes of Galera are written to, a lock on one node does not
#: exist on another: a transaction that loses is refused at COMMIT, and may lose again.  Measured: 3 of 91 reshapes with
#: 17 other clients.
_CLUSTER_CEILINGS: Mapping[str, float] = {"galera-all": 0.1}
_VARIABLE = re.compile(r"[0-9a-fA-F-]{36}|(?<=/inventories/)[A-Z0-9_]+|(?<=/traits/)[A-Z0-9_]+")


def collisions(history: History, ceilings: Mapping[tuple[str, str], float] = CEILINGS) -> list[Violation]:
    """Return a violation for each route whose refusals for collisions exceed its ceiling.

    Refusals during an event, such as a foreign session that holds a lock, do not count.
    """
    ceiling = _CLUSTER_CEILINGS.get(history.run.get("cluster", ""), 0.0)
    requests, refused_requests = defaultdict(list), defaultdict(list)
    for operation in history.operations:
        if operation.status and not operation.is_open and not _is_disturbed(operation, history):
            requests[route(operation)].append(operation)
            if has_collided(operation):
                refused_requests[route(operation)].append(operation)
    return [
        Violation(
            "no refusal for collisions",
            f"{method} {path}: {len(refusals)} of {len(requests[method, path])} requests refused for collisions, "
            f"{refusals[0].detail}",
            [operation.number for operation in refusals[:3]],
        )
        for (method, path), refusals in refused_requests.items()
        if len(refusals) > ceilings.get((method, path), ceiling) * len(requests[method, path])
    ]


def has_collided(operation: Operation) -> bool:
    """Whether the request, or one request within it, was refused for a collision."""
    return operation.status in (200, 409) and bool(_COLLIDED.search(json.dumps(operation.reply)))


def route(operation: Operation) -> tuple[str, str]:
    """Return the method, and the path without its query and with ``{}`` for each variable."""
    return operation.method, _VARIABLE.sub("{}", operation.path.partition("?")[0])


def _is_disturbed(operation: Operation, history: History) -> bool:
    assert operation.ended is not None
    return any(event.began <= operation.ended and operation.began <= healed_at(event) for event in history.events)
