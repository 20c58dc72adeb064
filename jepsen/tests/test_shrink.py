"""Histories are reduced to violating parts, without removing anything on which the violation relies."""

from dataclasses import replace
from itertools import permutations

import pytest

from jepsen.history import History, Operation
from jepsen.shrink import is_change, shortest
from jepsen.violation import Violation

KEY, OTHER = "11111111-aaaa-4aaa-8aaa-000000000001", "22222222-aaaa-4aaa-8aaa-000000000002"


def write(number, value, began, ended, key=KEY, status=204):
    """Return a write of a register."""
    return Operation(number, number, began, ended, 0, "PUT", f"/registers/{key}", None, value, status)


def read(number, value, began, ended, key=KEY):
    """Return a read of a register."""
    return Operation(number, number, began, ended, 0, "GET", f"/registers/{key}", None, None, 200, value)


def check(history):
    """Check registers by trying every order; correct but slow."""
    keys = {operation.path.rpartition("/")[2] for operation in history.operations}
    return [violations for key in sorted(keys) if (violations := violation_of(key, history.operations))]


def violation_of(key, operations):
    operations_on_key = [
        operation
        for operation in operations
        if operation.path.endswith(key) and (is_change(operation) or operation.method == "GET")
    ]
    opened = [operation for operation in operations_on_key if operation.is_open]
    for dropped in range(2 ** len(opened)):
        never = {operation.number for at, operation in enumerate(opened) if dropped >> at & 1}
        if any(
            is_legal(order)
            for order in permutations(operation for operation in operations_on_key if operation.number not in never)
        ):
            return None
    return Violation("register", f"{key} has no order", tuple(operation.number for operation in operations_on_key))


def is_legal(order):
    state = None
    for at, operation in enumerate(order):
        if any(later.ended is not None and later.ended < operation.began for later in order[at + 1 :]):
            return False
        if operation.method == "GET" and operation.reply != state:
            return False
        state = state if operation.method == "GET" else operation.body
    return True


def shortest_part(*operations):
    history = History({}, list(operations), [])
    [violation] = check(history)
    return [operation.number for operation in shortest(history, violation, check).operations]


def test_irrelevant_reads_and_refusals_are_removed():
    assert shortest_part(
        write(0, "a", 0, 1), read(1, "a", 2, 3), write(2, "b", 4, 5, status=409), write(3, "c", 6, 7),
        read(4, "c", 8, 9), read(5, "a", 10, 11),
    ) in ([0, 3, 5], [0, 1, 3, 4, 5])  # fmt: skip


def test_a_write_that_is_read_is_not_removed():
    # Without the second write the first read would be another violation, which did not happen.
    assert 1 in shortest_part(write(0, "a", 0, 1), write(1, "b", 2, 3), read(2, "b", 4, 5), read(3, "a", 6, 7))


def test_the_shortest_part_is_a_violation_whatever_the_removed_writes_did():
    operations = [write(0, "a", 0, 1), write(1, "b", 0, 9), write(2, "c", 2, 3), read(3, "b", 4, 5), read(4, "c", 6, 7),
                  read(5, "a", 10, 11), write(6, "d", 12, 13)]  # fmt: skip
    numbers = shortest_part(*operations)
    opened = [operation if operation.number in numbers else replace(operation, ended=None) for operation in operations]
    assert check(
        History({}, [operation for operation in opened if operation.number in numbers or is_change(operation)], [])
    )
    assert len(numbers) < 5


def test_operations_of_other_keys_are_removed():
    numbers = shortest_part(
        write(0, "a", 0, 1, OTHER), write(1, "a", 0, 1), read(2, "a", 2, 3, OTHER), read(3, "b", 2, 3)
    )
    assert numbers == [3]


def test_a_violation_of_another_key_does_not_count():
    history = History({}, [write(0, "a", 0, 1, OTHER), read(1, "b", 2, 3, OTHER), write(2, "a", 0, 1),
                           read(3, None, 2, 3)], [])  # fmt: skip
    violation = next(violation for violation in check(history) if KEY in violation.sentence)
    assert {operation.path for operation in shortest(history, violation, check).operations} == {f"/registers/{KEY}"}


def test_without_runs_the_named_operations_are_returned():
    history = History({}, [write(0, "a", 0, 1), read(1, "a", 2, 3), read(2, "b", 4, 5)], [])
    [violation] = check(history)
    assert [operation.number for operation in shortest(history, violation, check, max_checks=0).operations] == [0, 1, 2]


@pytest.mark.parametrize("status", [200, 204, 0, 500])
def test_open_and_successful_writes_are_changes(status):
    assert is_change(write(0, "a", 0, 1 if 0 < status < 500 else None, status=status))
