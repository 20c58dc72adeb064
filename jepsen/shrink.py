"""The shortest part of a history that still violates an invariant.

The operations are reduced by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", IEEE Transactions on Software Engineering 28(2), 2002: the algorithm *ddmin*).  A shorter history must not
violate the invariant merely because something is missing from it: without the write that other operations have read,
every history is wrong.  Therefore an operation is removed only as far as a sound history stays sound without it:

- A read, and a call that was refused, change nothing.  Any history without them stays sound.
- A call that may have changed something is never left out of what the checker is asked about.  It is made an *open*
  operation in its place: its reply is unknown, and it takes effect at any time after it began, or never.  A sound
  history stays sound, since what has happened is among what an open operation permits.  A history that violates the
  invariant with the open operation violates it without the operation, too: that is the case in which it never took
  effect.

So the violation of the operations that are left follows from them, whatever the others did.  It is still not all that a
reader needs: of a write, a read of what it wrote and a late read of what was there before, the write can be removed by
this rule, and then the first of the reads seems to be wrong by itself.  Therefore some removed writes are put back: the
fewest with which the violation ends as soon as any one operation is taken away; or, where it takes too long to find
them, those that wrote what the reads show.

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
from jepsen.effect_types import ConsumerRead, ConsumerWrite, ProviderUsed
from jepsen.history import History, Operation
from jepsen.violation import Check, Violation

#: How often the check is run, and the seconds after which it is not run again; twice, see below.
MOST_CHECKS, LONGEST = 400, 30.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shortest(history: History, violation: Violation, check: Check, most: int = MOST_CHECKS) -> History:
    """Return the history with the fewest operations found that violate the same invariant about the same things.

    Args:
        violation: What ``check`` found in the history.
        most: The largest number of runs of the check, to remove operations and to put back writes.

    Returns:
        A part of the history of which no operation can be removed by itself; or, when the runs or the time are used up,
        the shortest part so far.  If the check finds nothing in any part, the operations that the violation names.  It
        has no operations if the state at the end violates the invariant whatever the calls did.
    """
    named = set(violation.operations)
    search = _Search(history, violation, check, most)
    relevant = _concerning(history.operations, _subject(violation), named)
    for first in (
        named,
        {operation.number for operation in relevant},
        {operation.number for operation in history.operations},
    ):
        if search.violates(first):
            kept = ddmin(sorted(first), search.violates)
            return history.with_operations(search.chosen({*kept, *search.relied_on(kept)}))
    return history.with_operations(search.chosen(named))


def concerned(history: History, violation: Violation) -> list[Operation]:
    """Return the calls that may have changed what a violation names by its uuid; empty if it names nothing.

    For a violation that the state at the end shows by itself: which of these calls is the cause is not known.
    """
    subject = _subject(violation)
    return (
        [operation for operation in _concerning(history.operations, subject, ()) if is_change(operation)]
        if subject
        else []
    )


def is_change(operation: Operation) -> bool:
    """Whether the call may have changed something: it was no read, and was not refused."""
    return operation.method != "GET" and (operation.is_open or operation.succeeded)


class _Search:
    """Asks the check about parts of one history, which are sets of the numbers of operations."""

    def __init__(self, history: History, violation: Violation, check: Check, most: int) -> None:
        self._history, self._violation, self._check = history, violation, check
        self._most = self._left = most
        self._deadline = time.monotonic() + LONGEST
        self._subject = _subject(violation)
        #: Calls that concern nothing of the violation are left out from the beginning: each key is checked by itself.
        named = set(violation.operations)
        self._operations = _concerning(history.operations, self._subject, named)
        self._changes = {operation.number for operation in self._operations if is_change(operation)}

    def chosen(self, numbers: Collection[int]) -> list[Operation]:
        """Return the operations of these numbers."""
        return [operation for operation in self._history.operations if operation.number in numbers]

    def violates(self, kept: Collection[int]) -> bool:
        """Whether the invariant is violated by these operations, whatever the removed ones did."""
        return self._found(kept, self._changes - {*kept})

    def relied_on(self, kept: Collection[int]) -> list[int]:
        """Return the removed writes without which a smaller part would seem to violate the invariant."""
        removed = sorted(self._changes - {*kept})
        self._left, self._deadline = self._left + self._most, time.monotonic() + LONGEST

        def suffice(back: Collection[int], *, as_open: bool) -> bool:
            """Whether each part without one operation is sound if these writes are put back, perhaps as open ones."""
            opened = {*back} if as_open else set()
            parts = (({*kept, *back} - {number} - opened, opened | self._changes & {number}) for number in kept)
            return not any(self._found(*part) for part in parts) and not self._is_over()

        # As they were they leave less to search; there may be another violation among them.
        for holds in (functools.partial(suffice, as_open=False), functools.partial(suffice, as_open=True)):
            if holds(()):
                return []
            if holds(removed):
                return ddmin(removed, holds)
        return self._shown_by(kept, removed)

    def _shown_by(self, kept: Collection[int], removed: Sequence[int]) -> list[int]:
        """Return the removed writes after which consumers held what kept reads show."""
        reads = [
            effect
            for operation in self.chosen(kept)
            for effect in effects(operation)
            if isinstance(effect, ConsumerRead)
        ]
        shown = {(read.consumer, read.shown.resources) for read in reads if read.shown}
        return [
            operation.number
            for operation in self.chosen(removed)
            for effect in effects(operation)
            if isinstance(effect, ConsumerWrite) and effect.after
            if (effect.consumer, effect.after.resources) in shown
        ]

    def _is_over(self) -> bool:
        return self._left <= 0 or time.monotonic() > self._deadline

    def _found(self, kept: Collection[int], opened: Collection[int]) -> bool:
        """Whether the check finds the violation in these operations, of which some are open; counts as one run."""
        if self._is_over():
            return False
        self._left -= 1
        operations = [
            _opened(operation) if operation.number in opened else operation
            for operation in self._operations
            if operation.number in kept or operation.number in opened
        ]
        violations = self._check(self._history.with_operations(operations))
        return any(
            violation.invariant == self._violation.invariant and _subject(violation) == self._subject
            for violation in violations
        )


def ddmin(items: Sequence[int], holds: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return a part of the items for which ``holds``, and of which no single item can be removed.

    Args:
        holds: True of all items.
    """
    kept, chunks = [*items], 2
    while len(kept) >= 2:
        size = -(-len(kept) // chunks)
        pieces = [kept[start : start + size] for start in range(0, len(kept), size)]
        rests = [[item for item in kept if item not in piece] for piece in pieces]
        if piece := next(filter(holds, pieces), None):
            kept, chunks = piece, 2
        elif len(pieces) > 2 and (rest := next(filter(holds, rests), None)):
            kept, chunks = rest, max(chunks - 1, 2)
        elif size > 1:
            chunks = min(2 * chunks, len(kept))
        else:
            break
    return kept


def _opened(operation: Operation) -> Operation:
    return replace(operation, ended=None, status=0, reply=None)


def _subject(violation: Violation) -> frozenset[str]:
    """Return the uuids that the sentence names: what the violation is about."""
    return frozenset(_UUID.findall(violation.sentence))


def _concerning(operations: Sequence[Operation], subject: Collection[str], named: Collection[int]) -> list[Operation]:
    """Return the operations that mention a uuid of the subject, or change a consumer that uses a provider of it.

    A call that ends such a consumer changes the generation of the provider without naming it.
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
        if isinstance(effect, ProviderUsed) and effect.provider in subject
    }
    return [
        operation
        for operation in operations
        if operation.number in direct or (is_change(operation) and _consumers_of(operation) & consumers)
    ]


def _consumers_of(operation: Operation) -> set[str]:
    return {effect.consumer for effect in effects(operation) if isinstance(effect, ConsumerWrite)}
