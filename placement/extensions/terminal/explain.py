"""placement-ask explain: why a query finds what it finds, rule by rule (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table

Document = Mapping[str, Any]


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show an explanation."""
    shown = style.good if document["found"] else style.bad
    yield shown(plain(document["summary"]))
    steps = [_step(step) for step in document["steps"]]
    yield from _section("Rules, in the order in which they narrow", style)
    yield from table(("rule", "providers", "left", "trees", "left", "removed"), steps, style)
    amounts = [_amounts(step) for step in document["steps"] if step.get("amounts")]
    if amounts:
        yield from _section("Amounts", style)
        yield from table(("rule", "in the way of", "the most of any"), amounts, style)
    if document["combinations"]:
        yield from _section("Combinations", style)
        combinations = [
            (rule["parameter"], rule["trees"], _names(rule["examples"])) for rule in document["combinations"]
        ]
        yield from table(("rule", "trees", "such as"), combinations, style)
    if document["near_misses"]:
        yield from _section("Nearest misses", style)
        misses = [
            (name_of(miss["root"]), missing["text"]) for miss in document["near_misses"] for missing in miss["missing"]
        ]
        yield from table(("tree", "missing"), misses, style)
    if document["relaxations"]:
        yield from _section("What would help", style)
        yield from relaxations(document["relaxations"], style)
    for mistake in document["mistakes"]:
        yield from _section("Mistake in the query", style)
        suggestion = f"  Suggested: {mistake['suggestion']}" if mistake["suggestion"] else ""
        yield plain(mistake["text"] + suggestion)


def relaxations(found: Iterable[Document], style: Style) -> Iterator[str]:
    """Yield the lines that show changes of a query which are enough."""
    rows = [(each["text"], f"{each['found']}{'+' if each.get('limited') else ''}", each["query"]) for each in found]
    yield from table(("change", "candidates", "query"), rows, style)


#: The columns of ``facts``.
FACTS = ("about", "subject", "before", "after", "detail")


def facts(document: Document) -> Iterator[tuple[object, ...]]:
    """Yield all that an explanation says as rows of one table, for programs; counts are of trees."""
    for step in document["steps"]:
        yield "rule", _subject(step), step["before"]["trees"], step["after"]["trees"], _names(step["removed"])
    for rule in document["combinations"]:
        yield "combination", rule["parameter"], rule["trees"], 0, _names(rule["examples"])
    for miss in document["near_misses"]:
        yield from (("near miss", name_of(miss["root"]), "", "", missing["text"]) for missing in miss["missing"])
    for relaxation in document["relaxations"]:
        yield "relaxation", relaxation["query"], document["found"], relaxation["found"], relaxation["text"]
    for mistake in document["mistakes"]:
        yield "mistake", mistake["suggestion"] or "", "", "", mistake["text"]
    yield "summary", "", "", document["found"], document["summary"]


def fits(document: Document) -> bool:
    """Whether the query has candidates."""
    return bool(document["found"])


def _section(title: str, style: Style) -> Iterator[str]:
    yield ""
    yield style.dim(f"{title}:")


def _step(step: Document) -> tuple[object, ...]:
    before, after = step["before"], step["after"]
    return (
        _subject(step),
        before["providers"],
        after["providers"],
        before["trees"],
        after["trees"],
        _names(step["removed"]),
    )


def _subject(step: Document) -> str:
    """Return the rule of a step; a step of a whole group leaves out trees, after its rules left out providers."""
    return f"trees with {step['parameter']}" if step["rule"] == "group" else str(step["parameter"])


def _amounts(step: Document) -> tuple[object, ...]:
    amounts = step["amounts"]
    blocked = (f"{name} ({count})" for name, count in amounts["blocked_by"].items() if count)
    return step["parameter"], ", ".join(blocked), amounts["most"]


def _names(providers: list[Document]) -> str:
    return ", ".join(map(name_of, providers))
