"""Faults of the allocations of bare metal nodes."""

from __future__ import annotations

import time
from typing import Any

from jepsen.planted.faults import PAUSE, fault
from placement.db.writes.transaction import Transaction
from placement.extensions.baremetal.objects import placing
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import inventory_class
from placement.extensions.baremetal.objects.record import Record
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet


class _Unchecked(ClaimSet):
    """Claims that are not compared with what others use."""

    def _judge(self, groups: Any, inventories: Any) -> None:
        return


@fault
def node_taken_as_chosen() -> None:
    """A request takes the node that was free when it was chosen, although another consumer may have it by then."""
    claim = placing._claim

    def claim_late(*arguments: Any) -> None:
        time.sleep(PAUSE)
        claim(*arguments)

    def claim_once(db: Transaction, request: Any, candidate: Any) -> None:
        unit = {candidate.uuid: {inventory_class(request.resource_class): 1}}
        _Unchecked(db, [Claim(request.uuid, unit, request.consumer_owner, generation=None)]).place()
        placing._note_traits(LockedNode.of_claim(db, candidate.uuid), request)
        request.insert(db, node_uuid=candidate.uuid)

    placing._claim, placing._claim_once = claim_late, claim_once


@fault
def record_left() -> None:
    """An allocation that is deleted frees its node, and leaves its record."""
    Record.delete = lambda self, db: True
    Record.delete_of_consumer = classmethod(lambda cls, db, consumer: None)


@fault
def no_other_node() -> None:
    """A request that loses its node to another consumer fails, although other nodes are free."""
    is_decided = placing._is_decided

    def is_over(database: Any, request: Any, candidate: Any, attempts: int, refused: Any) -> bool:
        time.sleep(PAUSE)
        if not is_decided(database, request, candidate, attempts, refused):
            reason = placing._NO_NODES % {"resource_class": request.resource_class}
            failed = placing._FAILED % {"uuid": request.uuid, "reason": reason}
            placing._record_error(database, request, "no_nodes", failed, len(refused))
        return True

    placing._is_decided = is_over
