"""Handwritten histories for tests of checks: one operation per line, times in small numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jepsen import catalogue
from jepsen.history import Event, History, Operation
from jepsen.violation import Check


def history(*operations: Operation, events: Iterable[Event] = (), final: Any = None, **run: Any) -> History:
    """Return a history of operations, numbered in the order in which they began."""
    ordered = sorted(operations, key=lambda operation: operation.began)
    numbered = [
        Operation(**{field: getattr(operation, field) for field in operation.__slots__} | {"number": number})
        for number, operation in enumerate(ordered)
    ]
    return History(run, numbered, list(events), final or {})


def call(
    began: int,
    ended: int | None,
    method: str,
    path: str,
    body: Any = None,
    *,
    status: int = 200,
    reply: Any = None,
    process: int = 0,
    minor: int | None = None,
    note: Any = None,
) -> Operation:
    """Return an operation; without an end it has no response."""
    return Operation(
        *(0, process, began, ended, 0, method, path, minor, body),
        *(0 if ended is None else status, None if ended is None else reply, note or {}),
    )


def error(detail: str, code: str = "placement.undefined_code") -> Any:
    """Return the body of an error."""
    return {"errors": [{"detail": detail, "code": code}]}


def loss(began: int, healed: int, *, keeps_earlier: bool = False) -> Event:
    """Return an event that loses the last commits."""
    return Event("a loss", began, healed, loses_tail=True, keeps_earlier=keeps_earlier)


def violations(check: Check, *operations: Operation, **more: Any) -> set[str]:
    """Return the invariants violated by the operations, which the catalogue must list for the check."""
    invariants = {violation.invariant for violation in check(history(*operations, **more))}
    invariants_of_check = {
        invariant
        for name, named_check in catalogue.checks().items()
        for invariant in catalogue.INVARIANTS[name]
        if named_check is check
    }
    assert not invariants_of_check or invariants <= invariants_of_check
    return invariants
