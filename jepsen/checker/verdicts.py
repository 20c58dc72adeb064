"""Violations from the verdict about one object."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from jepsen.checker import linearizable
from jepsen.checker.linearizable import Model, Outcome, TimedCall
from jepsen.violation import Violation

#: Earlier operations named by a violation.
_MAX_PRECEDING = 4
#: States named in a sentence.
_MAX_STATES = 3


def judge(
    kind: str, name: str, operations: Sequence[TimedCall], model: Model, initial: Iterable[Hashable]
) -> Iterator[Violation]:
    """Yield a violation if no order of the operations on an object explains the responses, or the search gave up.

    Args:
        kind: Kind of the object: the name of the check.
        name: Name of the object, for the sentence.
    """
    verdict = linearizable.check(operations, model, initial)
    impossible = verdict.impossible
    if verdict.outcome is Outcome.LINEARIZABLE or impossible is None:
        return
    if verdict.outcome is Outcome.UNDECIDED:
        sentence = f"{name}: the search reached its bound without a verdict, at the end of {impossible.call}"
        yield Violation(f"{kind}: undecided", sentence, [impossible.number], undecided=True)
        return
    states = sorted(map(str, verdict.states))
    more = "" if len(states) <= _MAX_STATES else f" or one of {len(states) - _MAX_STATES} more"
    sentence = f"{name}: it was {' or '.join(states[:_MAX_STATES])}{more}; then {impossible.call} is impossible"
    yield Violation(f"{kind}: linearizable", sentence, _numbers(operations, impossible, verdict.pending))


def _numbers(operations: Iterable[TimedCall], impossible: TimedCall, pending: Iterable[TimedCall]) -> Sequence[int]:
    """Return the numbers of the impossible operation, of concurrent ones, and of the last ones before it."""
    began = impossible.began
    ended = [
        (operation.ended, operation.number)
        for operation in operations
        if operation.ended is not None and operation.ended < began
    ]
    preceding = [number for _, number in sorted(ended)[-_MAX_PRECEDING:]]
    numbers = {*preceding, *(operation.number for operation in pending), impossible.number}
    return sorted(number for number in numbers if number >= 0)
