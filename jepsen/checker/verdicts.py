"""A verdict about one object, as violations."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from jepsen.checker import linearizable
from jepsen.checker.linearizable import Model, Outcome, Timed
from jepsen.violation import Violation

#: How many calls that ended before are shown with a violation.
_BEFORE = 4
#: How many states are named.
_NAMED = 3


def judge(
    kind: str, name: str, operations: Sequence[Timed], model: Model, initial: Iterable[Hashable]
) -> Iterator[Violation]:
    """Yield what is wrong with one object: that no order of its calls explains the replies, or that none was found.

    Args:
        kind: Of the object: the name of the check.
        name: Of the object, in the sentence.
    """
    verdict = linearizable.check(operations, model, initial)
    impossible = verdict.impossible
    if verdict.outcome is Outcome.LINEARIZABLE or impossible is None:
        return
    if verdict.outcome is Outcome.UNDECIDED:
        sentence = f"{name}: no verdict in the bounds of the search, at the end of {impossible.call}"
        yield Violation(f"{kind}: undecided", sentence, [impossible.number], undecided=True)
        return
    states = sorted(map(str, verdict.states))
    more = "" if len(states) <= _NAMED else f" or one of {len(states) - _NAMED} more"
    sentence = f"{name}: it was {' or '.join(states[:_NAMED])}{more}; then {impossible.call} is impossible"
    yield Violation(f"{kind}: linearizable", sentence, _numbers(operations, impossible, verdict.pending))


def _numbers(operations: Iterable[Timed], impossible: Timed, pending: Iterable[Timed]) -> Sequence[int]:
    """Return the numbers of the impossible operation, of those beside it, and of the last before it."""
    began = impossible.began
    ended = [(each.ended, each.number) for each in operations if each.ended is not None and each.ended < began]
    before = [number for _, number in sorted(ended)[-_BEFORE:]]
    shown = {*before, *(each.number for each in pending), impossible.number}
    return sorted(number for number in shown if number >= 0)
