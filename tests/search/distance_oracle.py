"""How far trees are from a query, by brute force (docs: v1-explain).

Nothing here uses the search or the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search.oracle import fits, serves
from tests.world import Member, World


class Lack(NamedTuple):
    """A condition that is not met: its kind, its suffix and its names."""

    kind: str
    suffix: str | None
    names: frozenset[str]
    forbidden: bool = False
    #: For an amount: the part of it that is missing, and the amount that would fit instead; 0 if none would.
    part: float = 0.0
    fitting: int = 0


def lacks_of_tree(world: World, query: SearchQuery, root: str) -> frozenset[Lack]:
    """Return what the nearest providers of a tree lack, each without regard to the others."""
    usable = [member for member in world.members.values() if serves(world, member, root)]
    lacking = {*_names("root_required", None, query.root_traits, world.members[root].traits)}
    for group in query.groups:
        if group.suffix:
            lacking |= min((_lacks(world, group, member, root, [*group.resources]) for member in usable), key=_far).all
            continue
        having = frozenset().union(*(member.traits for member in usable))
        lacking |= {lack for lack in _names("trait", "", group.traits, having) if not lack.forbidden}
        for name in group.resources:
            lacking |= min((_lacks(world, group, member, root, [name]) for member in usable), key=_far).all
    return frozenset(lacking)


class _Lacks(NamedTuple):
    all: frozenset[Lack]
    #: For each amount 1 if no allocation fits, 2 without inventory.
    inventories: int
    id: int


def _far(lacks: _Lacks) -> tuple[int, float, int, int]:
    return len(lacks.all), round(sum(lack.part for lack in lacks.all), 6), lacks.inventories, lacks.id


def _lacks(world: World, group: Group, member: Member, root: str, classes: list[str]) -> _Lacks:
    """Return what a provider lacks for some classes of a group."""
    suffix, own = group.suffix, world.root(member.name) == root
    lacking: set[Lack] = set()
    known = group.in_tree in world.members
    if group.in_tree is not None and (not known or world.root(group.in_tree) != world.root(member.name)):
        lacking.add(Lack("in_tree", suffix, frozenset()))
    inside = barred = member.aggregates
    if not suffix:
        of_root = world.members[root].aggregates
        barred, inside = barred | of_root, inside | of_root if own else inside
    lacking |= {lack for lack in _names("aggregate", suffix, group.aggregates, inside) if not lack.forbidden}
    lacking |= {lack for lack in _names("aggregate", suffix, group.aggregates, barred) if lack.forbidden}
    lacking |= {lack for lack in _names("trait", suffix, group.traits, member.traits) if suffix or lack.forbidden}
    inventories = 0
    for name in classes:
        amount = group.resources[name]
        if not fits(member, name, amount):
            lower = max((n for n in range(1, amount) if fits(member, name, n)), default=0)
            higher = next((n for n in range(amount, 65) if fits(member, name, n)), 0)
            lacking.add(Lack("amount", suffix, frozenset({name}), part=1 - lower / amount, fitting=lower or higher))
            inventories += (0 if lower or higher else 1) if name in member.stock else 2
    return _Lacks(frozenset(lacking), inventories, world.ids[member.name])


def _names(kind: str, suffix: str | None, condition: NameCondition, names: frozenset[str]) -> Iterator[Lack]:
    yield from (Lack(kind, suffix, frozenset({name}), True) for name in condition.none_of & names)
    yield from (Lack(kind, suffix, any_of) for any_of in condition.any_of if not any_of & names)
