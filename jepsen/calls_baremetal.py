"""The effects of Bare Metal API operations: an allocation that holds a node is a consumer (ADR 23)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import os_resource_classes

from jepsen.effect_types import (
    ABSENT,
    ANY,
    PRESENT,
    ConsumerRead,
    ConsumerRefusal,
    ConsumerWrite,
    Effect,
    Holding,
    NodeOperation,
    amounts,
)
from jepsen.history import Operation

_TYPE = "BAREMETAL"


def _post_allocation(operation: Operation) -> Iterator[Effect]:
    """Yield the effects of a request for a node; only a later read shows whether it got one.

    With ``node``, the allocation may already exist as the consumer that holds the node (docs: baremetal-backfill).
    """
    reply = operation.reply if operation.succeeded else {}
    created = reply.get("uuid") or operation.body.get("uuid")
    if created is None:
        return
    if not (operation.succeeded or operation.is_open):
        yield ConsumerRefusal(created, "other")
    elif operation.body.get("node") is None:
        yield ConsumerWrite(created, ABSENT, Holding(None, type=_TYPE), certain=False)
    else:
        yield ConsumerWrite(created, ANY, Holding(None), certain=False)
        yield from _effects_of_node_allocation(reply)


def _get_allocation(operation: Operation, _uuid: str) -> Iterator[Effect]:
    if operation.succeeded:
        yield from _effects_of_node_allocation(operation.reply)


def _effects_of_node_allocation(document: Any) -> Iterator[Effect]:
    """Yield the effects of a response that shows an allocation with a node.

    An allocation without a node says nothing about the consumer with its uuid.
    """
    node = document.get("node_uuid")
    if node is not None:
        unit = os_resource_classes.normalize_name(document["resource_class"])
        yield ConsumerRead(document["uuid"], Holding(amounts({node: {unit: 1}})))
        yield NodeOperation(node)


def _delete_allocation(operation: Operation, uuid: str) -> Iterator[Effect]:
    if operation.succeeded or operation.is_open:
        yield ConsumerWrite(uuid, PRESENT, None, certain=False)
    else:
        yield ConsumerRefusal(uuid, "other")


def _node(operation: Operation) -> Iterator[Effect]:
    created = operation.body.get("uuid") or (operation.reply or {}).get("uuid")
    if created is not None:
        yield NodeOperation(created)


ROUTES: list[tuple[str, str, Callable[..., Iterator[Effect]]]] = [
    ("POST", r"/baremetal/v1/allocations", _post_allocation),
    ("GET", r"/baremetal/v1/allocations/([0-9a-f]{8}-[0-9a-f-]{27})", _get_allocation),
    ("DELETE", r"/baremetal/v1/allocations/([0-9a-f]{8}-[0-9a-f-]{27})", _delete_allocation),
    ("POST", r"/baremetal/v1/nodes", _node),
]
