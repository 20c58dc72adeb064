"""The shortest part of a history that still violates an invariant.

The operations are reduced with delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", IEEE Transactions on Software Engineering 28(2), 2002: the algorithm *ddmin*).  A shorter history must not
violate the invariant merely because something is missing: without a write whose value others have read, every history
is wrong.  Therefore an operation is removed only as far as a correct history stays correct without it:

- A read or a refused write changes nothing.  Removing it keeps a correct history correct.
- An operation that may have changed something stays in the checked history as an *open* operation: its response is
  unknown, and it takes effect at any time after it began, or never.  This keeps a correct history correct, because an
  open operation permits what has happened.  A history that is wrong with the open operation is also wrong without it,
  because the operation may never have taken effect.

So the remaining operations violate the invariant whatever the others did.  They may still be too few for a reader:
given a write, a read of its value and a late read of the previous value, this rule removes the write, and the first
read then looks wrong by itself.  Therefore some removed writes are put back: the fewest that make the rest correct as
soon as any one of the other operations is removed; or, if finding these takes too long, the writes whose values the
reads show.

All this relies on checks that treat open operations as described.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from jepsen.calls import effects
from jepsen.effect_types import ConsumerRead, ConsumerWrite, ProviderClaim
from jepsen.history import History, Operation
from jepsen.violation import Check, Violation

#: Maximum number of runs of the check, and seconds after which it is not run again, for each of the two phases.
MAX_CHECKS, MAX_SECONDS = 400, 30.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shortest(history: History, violation: Violation, check: Check, max_checks: int = MAX_CHECKS) -> History:
    """Return a minimal part of the history that violates the same invariant for the same objects.

    Args:
        violation: Result of ``check`` for the history.
        max_checks: Maximum number of runs of the check to remove operations, and again to put back writes.

    Returns:
        A part in which no single operation can be removed; or the shortest part so far when the runs or the time are
        used up; or the operations named by the violation if no part violates the invariant.  It is empty if the final
        state violates the invariant whatever the operations did.
    """
    named = set(violation.operations)
    search = _Search(history, violation, check, max_checks)
    relevant = _concerning(history.operations, _subject(violation), named)
    for first in (
        named,
        {operation.number for operation in relevant},
        {operation.number for operation in history.operations},
    ):
        if search.violates(first):
            remaining = ddmin(sorted(first), search.violates)
            return history.with_operations(search.operations_with({*remaining, *search.writes_relied_on(remaining)}))
    return history.with_operations(search.operations_with(named))


def operations_concerned(history: History, violation: Violation) -> list[Operation]:
    """Return the operations that may have changed the objects that a violation names by uuid.

    If the final state alone violates an invariant, its cause is among these operations.
    """
    subject = _subject(violation)
    return (
        [operation for operation in _concerning(history.operations, subject, ()) if is_change(operation)]
        if subject
        else []
    )


def is_change(operation: Operation) -> bool:
    """Whether the operation may have changed something: it is not a read and was not refused."""
    return operation.method != "GET" and (operation.is_open or operation.succeeded)


class _Search:
    """Runs of the check on parts of one history, given as sets of operation numbers."""

    def __init__(self, history: History, violation: Violation, check: Check, max_checks: int) -> None:
        self._history, self._violation, self._check = history, violation, check
        self._max_checks = self._remaining_checks = max_checks
        self._deadline = time.monotonic() + MAX_SECONDS
        self._subject = _subject(violation)
        #: Operations on other objects are dropped from the start, because each object is checked by itself.
        named = set(violation.operations)
        self._operations = _concerning(history.operations, self._subject, named)
        self._changes = {operation.number for operation in self._operations if is_change(operation)}

    def operations_with(self, numbers: Collection[int]) -> list[Operation]:
        """Return the operations with these numbers."""
        return [operation for operation in self._history.operations if operation.number in numbers]

    def violates(self, numbers: Collection[int]) -> bool:
        """Whether these operations violate the invariant whatever the removed ones did."""
        return self._finds_violation(numbers, self._changes - {*numbers})

    def writes_relied_on(self, remaining: Collection[int]) -> list[int]:
        """Return the removed writes without which a smaller part would seem to violate the invariant."""
        removed = sorted(self._changes - {*remaining})
        self._remaining_checks += self._max_checks
        self._deadline = time.monotonic() + MAX_SECONDS

        def suffice(restored: Collection[int], *, as_open: bool) -> bool:
            """Whether each part without one operation is correct if these writes are put back, as open ones or not."""
            as_open_numbers = {*restored} if as_open else set()
            parts = (
                ({*remaining, *restored} - {number} - as_open_numbers, as_open_numbers | self._changes & {number})
                for number in remaining
            )
            return not any(self._finds_violation(*part) for part in parts) and not self._is_exhausted()

        # With their responses, the writes leave less to search, but may violate the invariant among themselves.
        for holds in (functools.partial(suffice, as_open=False), functools.partial(suffice, as_open=True)):
            if holds(()):
                return []
            if holds(removed):
                return ddmin(removed, holds)
        return self._writes_shown_by(remaining, removed)

    def _writes_shown_by(self, remaining: Collection[int], removed: Sequence[int]) -> list[int]:
        """Return the removed writes whose values the remaining reads show."""
        reads = [
            effect
            for operation in self.operations_with(remaining)
            for effect in effects(operation)
            if isinstance(effect, ConsumerRead)
        ]
        values = {(read.consumer, read.holding.resources) for read in reads if read.holding}
        return [
            operation.number
            for operation in self.operations_with(removed)
            for effect in effects(operation)
            if isinstance(effect, ConsumerWrite) and effect.holding
            if (effect.consumer, effect.holding.resources) in values
        ]

    def _is_exhausted(self) -> bool:
        return self._remaining_checks <= 0 or time.monotonic() > self._deadline

    def _finds_violation(self, numbers: Collection[int], open_numbers: Collection[int]) -> bool:
        """Whether the check finds the violation in these operations, some of them open; counts as one run."""
        if self._is_exhausted():
            return False
        self._remaining_checks -= 1
        operations = [
            _as_open(operation) if operation.number in open_numbers else operation
            for operation in self._operations
            if operation.number in numbers or operation.number in open_numbers
        ]
        violations = self._check(self._history.with_operations(operations))
        return any(
            violation.invariant == self._violation.invariant and _subject(violation) == self._subject
            for violation in violations
        )


def ddmin(items: Sequence[int], holds: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return a part of the items for which ``holds`` is true, but is false without any single item.

    Args:
        holds: Predicate of parts, which is true for the whole sequence.
    """
    subset, granularity = [*items], 2
    while len(subset) >= 2:
        size = -(-len(subset) // granularity)
        chunks = [subset[start : start + size] for start in range(0, len(subset), size)]
        complements = [[item for item in subset if item not in chunk] for chunk in chunks]
        if chunk := next(filter(holds, chunks), None):
            subset, granularity = chunk, 2
        elif len(chunks) > 2 and (complement := next(filter(holds, complements), None)):
            subset, granularity = complement, max(granularity - 1, 2)
        elif size > 1:
            granularity = min(2 * granularity, len(subset))
        else:
            break
    return subset


def _as_open(operation: Operation) -> Operation:
    return replace(operation, ended=None, status=0, reply=None)


def _subject(violation: Violation) -> frozenset[str]:
    """Return the uuids in the sentence of a violation."""
    return frozenset(_UUID.findall(violation.sentence))


def _concerning(operations: Sequence[Operation], subject: Collection[str], named: Collection[int]) -> list[Operation]:
    """Return the operations that mention a uuid of the subject, or write a consumer that uses a provider of it.

    Deleting such a consumer changes the generation of the provider without naming it.
    """
    if not subject:
        return list(operations)
    texts = {
        operation.number: json.dumps([operation.path, operation.body, operation.reply, dict(operation.note)])
        for operation in operations
    }
    direct = {number for number, text in texts.items() if number in named or any(uuid in text for uuid in subject)}
    consumers = {
        effect.consumer
        for operation in operations
        if operation.number in direct
        for effect in effects(operation)
        if isinstance(effect, ProviderClaim) and effect.provider in subject
    }
    return [
        operation
        for operation in operations
        if operation.number in direct or (is_change(operation) and _consumers_of(operation) & consumers)
    ]


def _consumers_of(operation: Operation) -> set[str]:
    return {effect.consumer for effect in effects(operation) if isinstance(effect, ConsumerWrite)}
