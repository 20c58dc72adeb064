"""A second implementation of the places allowed for a consumer, by brute force: ``oracle``, with growing usage."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from placement.search.query.query import SearchQuery
from tests.search import oracle
from tests.world import World

#: Provider, resource class, amount.
Amount = tuple[str, str, int]


def use(world: World, amounts: Iterable[Amount], *, one_consumer: bool = False) -> World:
    """Return the world with added usage; an amount may be negative.

    Args:
        one_consumer: Whether the same consumer takes more, so that less is left of each max_unit.
    """
    used = World(dict(world.members), world.classes, world.ids, world.trait_ids)
    for name, class_, amount in amounts:
        member = used.members[name]
        stock = member.stock[class_]
        stock = replace(
            stock, used=stock.used + amount, max_unit=stock.effective_max_unit - (amount if one_consumer else 0)
        )
        used.members[name] = replace(member, stock={**member.stock, class_: stock})
    return used


def places(world: World, query: SearchQuery, anchors: Collection[str]) -> dict[str, set[oracle.Candidate]]:
    """Return the candidates of each tree among ``anchors`` that has any."""
    candidates_by_tree = {anchor: oracle.candidates_of(world, query, anchor) for anchor in oracle.anchors(world, query)}
    return {anchor: candidates for anchor, candidates in candidates_by_tree.items() if candidates and anchor in anchors}


def has_copies(world: World, query: SearchQuery, copies: int, anchors: list[str]) -> bool:
    """Whether candidates of ``copies`` different trees fit together, for one consumer."""
    if not copies:
        return True
    return any(
        has_copies(use(world, amounts, one_consumer=True), query, copies - 1, anchors[place + 1 :])
        for place, anchor in enumerate(anchors)
        for amounts in {amounts for amounts, _ in places(world, query, [anchor]).get(anchor, ())}
    )


def fit_together(world: World, consumers: list[tuple[SearchQuery, list[Amount]]], anchor: str) -> bool:
    """Whether candidates of one tree for different consumers fit together, each with the amounts it releases."""
    if not consumers:
        return True
    query, released = consumers[0]
    placements = {amounts for amounts, _ in places(use(world, released), query, [anchor]).get(anchor, ())}
    return any(fit_together(use(world, amounts), consumers[1:], anchor) for amounts in placements)
