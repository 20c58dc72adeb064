"""placement-ask explain: why a query finds what it finds, rule by rule (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table

Document = Mapping[str, Any]
COLUMNS = ("about", "subject", "before", "after", "detail")


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show an explanation."""
    shown = style.good if document["found"] else style.bad
    yield shown(plain(document["summary"]))
    found = list(rows(document))
    if found:
        yield ""
    yield from table(COLUMNS, found, style)


def rows(document: Document, *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield all that an explanation says.

    ``before`` and ``after`` are numbers of trees; of a relaxation those of candidates; of an amount ``after`` is the
    most that any provider has.

    Args:
        everywhere: Whether the summary is the last row, for programs; otherwise it is left out.
    """
    for step in document["steps"]:
        yield "rule", _subject(step), step["before"]["trees"], step["after"]["trees"], _left(step)
        if step.get("amounts"):
            yield "amount", step["parameter"], None, step["amounts"]["most"], _in_the_way(step["amounts"])
    for rule in document["combinations"]:
        yield "combination", rule["parameter"], rule["trees"], 0, f"such as {_names(rule['examples'])}"
    for miss in document["near_misses"]:
        yield from (("near miss", name_of(miss["root"]), None, None, missing["text"]) for missing in miss["missing"])
    for relaxation in document["relaxations"]:
        more = ", or more" if relaxation.get("limited") else ""
        yield "relaxation", relaxation["query"], document["found"], relaxation["found"], relaxation["text"] + more
    for mistake in document["mistakes"]:
        suggestion = f"  Suggested: {mistake['suggestion']}" if mistake["suggestion"] else ""
        yield "mistake", "", None, None, mistake["text"] + suggestion
    if everywhere:
        yield "summary", "", None, document["found"], document["summary"]


def fits(document: Document) -> bool:
    """Whether the query has candidates."""
    return bool(document["found"])


def _subject(step: Document) -> str:
    """Return the rule of a step; a step of a whole group leaves out trees, after its rules left out providers."""
    return f"trees with {step['parameter']}" if step["rule"] == "group" else str(step["parameter"])


def _left(step: Document) -> str:
    """Return how many providers a step leaves, and which it removes."""
    before, after = step["before"]["providers"], step["after"]["providers"]
    removed = f"; removed: {_names(step['removed'])}" if step["removed"] else ""
    return f"{after} of {before} providers left{removed}"


def _in_the_way(amounts: Document) -> str:
    blocked = (f"{name} ({count})" for name, count in amounts["blocked_by"].items() if count)
    return f"in the way: {', '.join(blocked)}"


def _names(providers: list[Document]) -> str:
    return ", ".join(map(name_of, providers))
