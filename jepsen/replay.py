"""A second check of a recorded history, with a picture of the shortest violating part of each invariant.

If the final state alone violates an invariant, the picture shows the operations on the objects concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jepsen import formatting, timeline
from jepsen.history import History, Operation
from jepsen.shrink import MAX_CHECKS, operations_concerned, shortest
from jepsen.violation import Check, Violation

#: Violations printed per invariant.
_MAX_PRINTED = 5
#: Maximum length of a line about an operation; the picture shows the full text in a tooltip.
_LINE_LENGTH = 240
#: Operations drawn for a final state that violates an invariant by itself.
_MAX_DRAWN = 40


def replay(path: Path, checks: Mapping[str, Check], svg: Path | None = None, max_checks: int = MAX_CHECKS) -> int:
    """Print the violations of a recorded history, and draw the first violation of each invariant.

    Args:
        checks: All checks, by name.
        svg: File of the picture; next to the history by default.  Further invariants get numbered files.
        max_checks: Maximum number of runs of a check to shorten the history.

    Returns:
        1 if there is a violation, else 0.
    """
    history = History.read(path)
    print(f"{path}: {len(history.operations)} operations, {len(history.events)} events, {dict(history.run)}")
    by_invariant = _by_invariant(history, checks)
    svg = svg or path.with_suffix(".svg")
    for undecided in [name for name, (_, violations) in by_invariant.items() if violations[0].undecided]:
        print("", *_lines_about(history, by_invariant.pop(undecided)[1]), sep="\n")
    for number, (check, violations) in enumerate(by_invariant.values()):
        print("", *_lines_about(history, violations), sep="\n")
        first = violations[0]
        part, description = _part_to_draw(history, first, check, max_checks)
        target = svg if not number else svg.with_stem(f"{svg.stem}-{number + 1}")
        title = f"{first.invariant}: {formatting.shorten_uuids(first.sentence)}"
        if not first.operations:
            title += " (the final state)"
        target.write_text(timeline.svg(part, first.operations, title))
        print(f"{description}, drawn in {target}:")
        print(*(f"    {_line(operation)}" for operation in part.operations), sep="\n")
    if not by_invariant:
        print("no violations")
    return 1 if by_invariant else 0


def _part_to_draw(history: History, violation: Violation, check: Check, max_checks: int) -> tuple[History, str]:
    """Return the part of the history that shows a violation, and its description."""
    part = shortest(history, violation, check, max_checks)
    if part.operations:
        return part, f"Shortest violating part, {len(part.operations)} operations"
    # Without operations, either the final state violates the invariant, or the search ran out of time.
    is_final_state = any(other.invariant == violation.invariant for other in check(part))
    description = (
        "The final state alone violates the invariant" if is_final_state else "No short violating part was found"
    )
    operations = operations_concerned(history, violation)
    if not operations:
        return part, f"{description}; no operation names the objects concerned.  Events"
    last = operations[-_MAX_DRAWN:]
    selection = "all" if len(last) == len(operations) else f"the last {len(last)} of"
    description = f"{description}.  Operations that may have changed these objects, {selection} {len(operations)}"
    return history.with_operations(last), description


def _by_invariant(history: History, checks: Mapping[str, Check]) -> Mapping[str, tuple[Check, list[Violation]]]:
    """Return the violations of each invariant with the check that found them."""
    by_invariant: dict[str, tuple[Check, list[Violation]]] = {}
    for check in checks.values():
        for violation in check(history):
            by_invariant.setdefault(violation.invariant, (check, []))[1].append(violation)
    return by_invariant


def _lines_about(history: History, violations: Sequence[Violation]) -> Iterator[str]:
    """Yield the lines about the violations of one invariant."""
    by_number = {operation.number: operation for operation in history.operations}
    for violation in violations[:_MAX_PRINTED]:
        yield f"{violation.invariant}: {violation.sentence}"
        yield from (f"    {_line(by_number[number])}" for number in violation.operations if number in by_number)
    if len(violations) > _MAX_PRINTED:
        yield f"... and {len(violations) - _MAX_PRINTED} more of this invariant"


def _line(operation: Operation) -> str:
    line = formatting.line_of(operation)
    return line if len(line) <= _LINE_LENGTH else f"{line[: _LINE_LENGTH - 1]}…"
