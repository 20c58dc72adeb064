"""Violations from the verdict about one object."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from jepsen.checker import linearizable
from jepsen.checker.linearizable import Model, Outcome, Timed
from jepsen.violation import Violation

#: Earlier operations named by a violation.
_BEFORE = 4
#: States named in a sentence.
_NAMED = 3


def judge(
    kind: str, name: str, operations: Sequence[Timed], model: Model, initial: Iterable[Hashable]
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
    more = "" if len(states) <= _NAMED else f" or one of {len(states) - _NAMED} more"
    sentence = f"{name}: it was {' or '.join(states[:_NAMED])}{more}; then {impossible.call} is impossible"
    yield Violation(f"{kind}: linearizable", sentence, _numbers(operations, impossible, verdict.pending))


def _numbers(operations: Iterable[Timed], impossible: Timed, pending: Iterable[Timed]) -> Sequence[int]:
    """Return the numbers of the impossible operation, of concurrent ones, and of the last ones before it."""
    began = impossible.began
    ended = [(each.ended, each.number) for each in operations if each.ended is not None and each.ended < began]
    before = [number for _, number in sorted(ended)[-_BEFORE:]]
    shown = {*before, *(each.number for each in pending), impossible.number}
    return sorted(number for number in shown if number >= 0)
