"""Output of ``placement-ask explain``: the rules of a query and the trees that each rule leaves (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table

Document = Mapping[str, Any]
COLUMNS = ("about", "subject", "before", "after", "detail")


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for an explanation."""
    render = style.good if document["found"] else style.bad
    yield render(plain(document["summary"]))
    steps = list(rows(document))
    if steps:
        yield ""
    yield from table(COLUMNS, steps, style)


def rows(document: Document, *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield the rows of an explanation.

    ``before`` and ``after`` are numbers of trees; for a relaxation, numbers of candidates; for an amount, ``after`` is
    the largest amount of a provider.

    Args:
        everywhere: Whether to add the summary as the last row, for processing.
    """
    for step in document["steps"]:
        yield "rule", _subject(step), step["before"]["trees"], step["after"]["trees"], _remaining_providers(step)
        if step.get("amounts"):
            yield "amount", step["parameter"], None, step["amounts"]["most"], _blocked_amounts(step["amounts"])
    for rule in document["combinations"]:
        yield "combination", rule["parameter"], rule["trees"], 0, f"such as {_names(rule['examples'])}"
    for miss in document["near_misses"]:
        yield from (("near miss", name_of(miss["root"]), None, None, missing["text"]) for missing in miss["missing"])
    for relaxation in document["relaxations"]:
        suffix = ", or more" if relaxation.get("limited") else ""
        yield "relaxation", relaxation["query"], document["found"], relaxation["found"], relaxation["text"] + suffix
    for mistake in document["mistakes"]:
        suggestion = f"  Suggested: {mistake['suggestion']}" if mistake["suggestion"] else ""
        yield "mistake", "", None, None, mistake["text"] + suggestion
    if everywhere:
        yield "summary", "", None, document["found"], document["summary"]


def fits(document: Document) -> bool:
    """Whether the query has candidates."""
    return bool(document["found"])


def _subject(step: Document) -> str:
    """Return the rule of a step; the step of a group removes trees after the rules of the group removed providers."""
    return f"trees with {step['parameter']}" if step["rule"] == "group" else str(step["parameter"])


def _remaining_providers(step: Document) -> str:
    """Return the number of providers that a step leaves, and the names of the removed providers."""
    before, after = step["before"]["providers"], step["after"]["providers"]
    removed = f"; removed: {_names(step['removed'])}" if step["removed"] else ""
    return f"{after} of {before} providers left{removed}"


def _blocked_amounts(amounts: Document) -> str:
    blocked = (f"{name} ({count})" for name, count in amounts["blocked_by"].items() if count)
    return f"in the way: {', '.join(blocked)}"


def _names(providers: list[Document]) -> str:
    return ", ".join(map(name_of, providers))
