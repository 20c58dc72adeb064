"""Check of bare metal nodes: each has one holder, whichever API allocated it, and no request fails while one is free.

The service decides a request for a node at one point in time, so a failure is wrong if at each time during the request
some node was free, not always the same one (placement/extensions/baremetal/objects/placing.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import os_resource_classes

from jepsen.checker.holdings import HeldAmounts, holdings
from jepsen.checker.inventories import Inventory, Pair
from jepsen.checker.records import records
from jepsen.checker.registers import Register, Write
from jepsen.checker.step_functions import Steps, changes, combined_times
from jepsen.history import RUNNER, History, Operation
from jepsen.violation import Violation

_NODES = "/baremetal/v1/nodes"
#: Errors of an allocation that found no free node, among all or among its candidates; missing traits have another one.
_NO_NODES = "no available nodes match", "none of the requested nodes are available"


def machines(history: History) -> list[Violation]:
    """Return violations by nodes with two holders, failed requests despite a free node, and records without a claim."""
    if not any(operation.path.startswith("/baremetal") for operation in history.operations):
        return []
    registers = holdings(history, expires_at_once=True)
    violations = [*_double_holders(history, registers), *_records_without_claims(history)]
    return [*violations, *_unexplained_failures(history, registers)]


def _double_holders(history: History, registers: Mapping[str, Register[HeldAmounts]]) -> Iterator[Violation]:
    nodes = {operation.reply["uuid"] for operation in _node_creations(history)}
    holders: dict[Pair, dict[str, Register[HeldAmounts]]] = defaultdict(dict)
    for consumer, register in registers.items():
        for write in register.writes:
            for pair in write.value.amounts:
                if pair[0] in nodes:
                    holders[pair][consumer] = register
    for pair, by_consumer in holders.items():
        steps_by_consumer = {
            consumer: Steps(changes(register, _min_amount(pair))) for consumer, register in by_consumer.items()
        }
        for time in combined_times(
            steps_by_consumer.values(),
            -1,
            max((time for steps in steps_by_consumer.values() for time in steps.times), default=0),
        ):
            if len(consumers := [consumer for consumer, steps in steps_by_consumer.items() if steps.at(time)]) > 1:
                numbers = [
                    write.operation for consumer in consumers for write in by_consumer[consumer].possible(time, time)
                ]
                sentence = f"{pair[0]} is held by {' and '.join(sorted(consumers))}"
                yield Violation("a node has one holder", sentence, sorted(numbers))
                break


def _min_amount(pair: Pair) -> Any:
    def minimum(writes: Sequence[Write[HeldAmounts]]) -> float:
        return min(write.value.amounts.get(pair, 0) for write in writes)

    return minimum


def _records_without_claims(history: History) -> Iterator[Violation]:
    state = history.final.get("machines", {"holders": [], "records": []})
    holders = {(node, consumer) for node, consumer in state["holders"]}
    for node, uuid in state["records"]:
        if (node, uuid) not in holders:
            yield Violation(
                "records agree with claims", f"record {uuid} has node {node}, but its consumer does not hold it"
            )


def _unexplained_failures(history: History, registers: Mapping[str, Register[HeldAmounts]]) -> Iterator[Violation]:
    nodes, node_records = _unchanged_nodes(history), records(history)
    steps_by_holder: dict[tuple[Pair, str], Steps] = {}
    for operation in history.operations:
        if (operation.method, operation.path) != ("POST", "/baremetal/v1/allocations") or not operation.succeeded:
            continue
        record, error = node_records.get(operation.reply["uuid"], {}), ""
        if record.get("state") == "error":
            error = str(record.get("last_error"))
        if not any(sentence in error for sentence in _NO_NODES):
            continue
        candidates = [
            (node, os_resource_classes.normalize_name(name))
            for node, name in nodes.items()
            if name == record["resource_class"] and node in (operation.body.get("candidate_nodes") or nodes)
        ]
        if candidates and _is_some_free(candidates, operation, registers, steps_by_holder):
            sentence = f"no node for {record['uuid']}, although one of {len(candidates)} is free at any time"
            yield Violation("no request fails while a node is free", sentence, (operation.number,))


def node_inventories(history: History) -> dict[Pair, Register[Inventory | None]]:
    """Return the register of the inventory, one unit, of each node that is unchanged since the clients began."""
    available: Write[Inventory | None] = Write(0, _clients_began(history) - 1, Inventory(total=1))
    return {
        (node, os_resource_classes.normalize_name(name)): Register(None, [available], history.events)
        for node, name in _unchanged_nodes(history).items()
    }


def _unchanged_nodes(history: History) -> dict[str, str]:
    """Return the resource classes, by uuid, of the nodes that are unchanged since the clients began."""
    began = _clients_began(history)
    nodes = {operation.reply["uuid"]: operation.reply["resource_class"] for operation in _node_creations(history)}
    changed_parts = {
        part
        for operation in history.operations
        if operation.path.startswith(_NODES)
        and operation.method != "GET"
        and (operation.ended is None or operation.ended > began)
        for part in operation.path.split("/")
    }
    return {node: name for node, name in nodes.items() if node not in changed_parts}


def _clients_began(history: History) -> int:
    return min((operation.began for operation in history.operations if operation.process != RUNNER), default=0)


def _node_creations(history: History) -> list[Operation]:
    return [
        operation
        for operation in history.operations
        if (operation.method, operation.path) == ("POST", _NODES) and operation.succeeded
    ]


def _is_some_free(
    pairs: Collection[Pair],
    operation: Operation,
    registers: Mapping[str, Register[HeldAmounts]],
    steps_by_holder: dict[tuple[Pair, str], Steps],
) -> bool:
    """Whether at each time during an operation some node is certainly not held by another consumer.

    Args:
        steps_by_holder: Cache of the largest amounts held by consumers.
    """
    assert operation.ended is not None
    by_pair: dict[Pair, list[Steps]] = {}
    for pair in pairs:
        by_pair[pair] = []
        for consumer, register in registers.items():
            if consumer != operation.reply["uuid"]:
                if (pair, consumer) not in steps_by_holder:
                    steps_by_holder[pair, consumer] = Steps(changes(register, _max_amount(pair)))
                by_pair[pair].append(steps_by_holder[pair, consumer])
    times = combined_times(
        [steps for steps_of_node in by_pair.values() for steps in steps_of_node], operation.began, operation.ended
    )
    return all(
        any(not any(steps.at(time) for steps in steps_of_node) for steps_of_node in by_pair.values()) for time in times
    )


def _max_amount(pair: Pair) -> Any:
    def maximum(writes: Sequence[Write[HeldAmounts]]) -> float:
        return max(write.value.max_amount(pair) for write in writes)

    return maximum
