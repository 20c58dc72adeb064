"""Faults of the allocation of bare metal nodes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from jepsen.planted.faults import PAUSE, fault
from placement.db.schema.tables import utcnow
from placement.db.writes.transaction import Transaction
from placement.extensions.baremetal.objects import placing
from placement.extensions.baremetal.objects.candidates import CandidateNode
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import inventory_class
from placement.extensions.baremetal.objects.placing import NodeRequest
from placement.extensions.baremetal.objects.record import Record
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet


class _UncheckedClaims(ClaimSet):
    """Claims that are not compared with the capacity."""

    def _judge(self, groups: Any, inventories: Any) -> None:
        return


@fault
def chosen_node_not_rechecked() -> None:
    """A request takes the node that it chose without checking that the node is still free."""
    claimed = NodeRequest._try_claim

    def claim_late(self: NodeRequest, candidate: CandidateNode) -> Any:
        time.sleep(PAUSE)
        return claimed(self, candidate)

    def claim(self: NodeRequest, db: Transaction, candidate: CandidateNode) -> None:
        request = self._request
        unit = {candidate.uuid: {inventory_class(request.resource_class): 1}}
        _UncheckedClaims(db, [Claim(request.uuid, unit, self._owner, generation=None)]).place()
        placing._write_traits(LockedNode.of_claim(db, candidate.uuid), request)
        replace(request, node_uuid=candidate.uuid, updated_at=utcnow()).insert(db)

    NodeRequest._try_claim, NodeRequest._claim = claim_late, claim


@fault
def record_not_deleted() -> None:
    """Deleting an allocation frees its node, but leaves its record."""
    Record.delete = lambda self, db: True
    Record.delete_of_consumer = classmethod(lambda cls, db, consumer: None)


@fault
def no_retry_on_other_nodes() -> None:
    """A request that loses its node to another consumer fails, although other nodes are free."""
    claimed = NodeRequest._try_claim

    def claim_or_fail(self: NodeRequest, candidate: CandidateNode) -> Any:
        time.sleep(PAUSE)
        outcome = claimed(self, candidate)
        if outcome is None:
            reason = placing._NO_NODES % {"resource_class": self._request.resource_class}
            return self._record_failure("no_nodes", placing._FAILED % {"uuid": self._request.uuid, "reason": reason})
        return outcome

    NodeRequest._try_claim = claim_or_fail
