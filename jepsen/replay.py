"""A recorded history, judged again: each violation in words, and a picture of the shortest part that violates.

Where the state at the end violates an invariant by itself, the picture has the calls that concern the same things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jepsen import formatting, timeline
from jepsen.history import History, Operation
from jepsen.shrink import MOST_CHECKS, concerned, shortest
from jepsen.violation import Check, Violation

#: How many violations of one invariant are printed.
_MOST = 5
#: Characters of a line about an operation; the picture has the complete texts.
_LONGEST = 240
#: How many calls are drawn beside a state at the end that violates an invariant by itself.
_LAST = 40


def replay(path: Path, checks: Mapping[str, Check], svg: Path | None = None, most: int = MOST_CHECKS) -> int:
    """Print what violates invariants in a recorded history, and draw what shows the first violation of each invariant.

    Args:
        checks: All invariants, by name.
        svg: The file of the picture; by default beside the history.  Further invariants have numbered files.
        most: How often a check is run to shorten the history.

    Returns:
        1 if something is violated, else 0.
    """
    history = History.read(path)
    print(f"{path}: {len(history.operations)} operations, {len(history.events)} events, {dict(history.run)}")
    by_invariant = _by_invariant(history, checks)
    svg = svg or path.with_suffix(".svg")
    for undecided in [name for name, (_, violations) in by_invariant.items() if violations[0].undecided]:
        print("", *_in_words(history, by_invariant.pop(undecided)[1]), sep="\n")
    for number, (check, violations) in enumerate(by_invariant.values()):
        print("", *_in_words(history, violations), sep="\n")
        first = violations[0]
        part, description = _drawn(history, first, check, most)
        target = svg if not number else svg.with_stem(f"{svg.stem}-{number + 1}")
        title = f"{first.invariant}: {formatting.shortened(first.sentence)}"
        if not first.operations:
            title += " (the state at the end)"
        target.write_text(timeline.svg(part, first.operations, title))
        print(f"{description}, drawn in {target}:")
        print(*(f"    {_line(operation)}" for operation in part.operations), sep="\n")
    if not by_invariant:
        print("nothing is violated")
    return 1 if by_invariant else 0


def _drawn(history: History, violation: Violation, check: Check, most: int) -> tuple[History, str]:
    """Return the part of the history that shows a violation, and what it is."""
    part = shortest(history, violation, check, most)
    if part.operations:
        return part, f"The shortest part that violates, {len(part.operations)} operations"
    # Without operations it is about the state at the end; a search that ran out of time says nothing about that.
    alone = any(other.invariant == violation.invariant for other in check(part))
    description = "The state at the end violates it by itself" if alone else "No short part was found"
    calls = concerned(history, violation)
    if not calls:
        return part, f"{description}; no call names what it concerns.  The events"
    last = calls[-_LAST:]
    which = "all" if len(last) == len(calls) else f"the last {len(last)} of"
    description = f"{description}.  Calls that may have changed what it concerns, {which} {len(calls)}"
    return history.with_operations(last), description


def _by_invariant(history: History, checks: Mapping[str, Check]) -> Mapping[str, tuple[Check, list[Violation]]]:
    """Return the violations of each invariant with the check that found them; a check may be of several invariants."""
    by_invariant: dict[str, tuple[Check, list[Violation]]] = {}
    for check in checks.values():
        for violation in check(history):
            by_invariant.setdefault(violation.invariant, (check, []))[1].append(violation)
    return by_invariant


def _in_words(history: History, violations: Sequence[Violation]) -> Iterator[str]:
    """Yield the lines about the violations of one invariant."""
    by_number = {operation.number: operation for operation in history.operations}
    for violation in violations[:_MOST]:
        yield f"{violation.invariant}: {violation.sentence}"
        yield from (f"    {_line(by_number[number])}" for number in violation.operations if number in by_number)
    if len(violations) > _MOST:
        yield f"... and {len(violations) - _MOST} more of this invariant"


def _line(operation: Operation) -> str:
    line = formatting.line_of(operation)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
