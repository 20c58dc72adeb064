"""A second implementation of the rules of a search (docs: api-candidates), by brute force: all combinations, filtered.

Nothing here uses the search or the index.  If the two disagree, the documentation decides.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.world import Member, World

#: All (provider, resource class, amount) of a candidate.
Amounts = frozenset[tuple[str, str, int]]
#: All (suffix, the providers that serve it) of a candidate.
Mappings = frozenset[tuple[str, frozenset[str]]]
Candidate = tuple[Amounts, Mappings]
#: The supply of one group: (provider, class, amount), and (provider, None, 0) for a group without resources.
Match = tuple[tuple[str, str | None, int], ...]

SHARES = "MISC_SHARES_VIA_AGGREGATE"


def candidates(world: World, query: SearchQuery) -> set[Candidate]:
    """Return all candidates, ignoring the limit."""
    return set().union(*(candidates_of(world, query, anchor) for anchor in anchors(world, query)))


def candidates_of(world: World, query: SearchQuery, anchor: str) -> set[Candidate]:
    """Return the candidates of one tree, including candidates that other trees share."""
    usable = [member for member in world.members.values() if serves(world, member, anchor)]
    matches = [list(matching(world, query, group, anchor, usable)) for group in query.groups]
    return {
        as_candidate(query, combination)
        for combination in itertools.product(*matches)
        if allowed(world, query, combination)
    }


def summarized_providers(world: World, query: SearchQuery, candidates: set[Candidate]) -> set[str]:
    """Return the providers that a response with these candidates summarizes."""
    used = {name for amounts, _ in candidates for name, _, _ in amounts}
    if not query.nested:
        return used
    roots = {world.root(name) for name in used}
    return {name for name in world.members if world.root(name) in roots}


# --- who may serve ---


def anchors(world: World, query: SearchQuery) -> Iterator[str]:
    """Yield the roots that meet the conditions on roots."""
    for member in world.members.values():
        is_root = member.parent is None
        if is_root and meets(query.root_traits, member.traits):
            yield member.name


def serves(world: World, member: Member, anchor: str) -> bool:
    """Whether a candidate of the anchor may use the provider."""
    if world.root(member.name) == anchor:
        return True
    tree = [other for other in world.members.values() if world.root(other.name) == anchor]
    return SHARES in member.traits and any(member.aggregates & other.aggregates for other in tree)


def fits(member: Member, class_: str, amount: int) -> bool:
    stock = member.stock.get(class_)
    if stock is None:
        return False
    capacity = (stock.total - stock.reserved) * stock.allocation_ratio
    return (
        stock.used + amount <= capacity
        and stock.min_unit <= amount <= stock.effective_max_unit
        and amount % stock.step_size == 0
    )


def meets(requirement: NameCondition, names: frozenset[str]) -> bool:
    return all(any_of & names for any_of in requirement.any_of) and not requirement.none_of & names


def belongs(group: Group, aggregates: frozenset[str]) -> bool:
    return all(any_of & aggregates for any_of in group.aggregates.any_of)


# --- one group ---


def matching(world: World, query: SearchQuery, group: Group, anchor: str, usable: list[Member]) -> Iterator[Match]:
    """Yield every way to serve one group."""
    if group.in_tree is not None:
        if group.in_tree not in world.members:
            return
        tree = world.root(group.in_tree)
        usable = [member for member in usable if world.root(member.name) == tree]
    usable = [member for member in usable if not group.traits.none_of & member.traits]
    if group.suffix:
        yield from (supply_by_member(group, member) for member in usable if serves_suffixed(group, member))
    else:
        yield from supplies_of_unsuffixed(world, group, anchor, usable)


def serves_suffixed(group: Group, member: Member) -> bool:
    return (
        all(fits(member, class_, amount) for class_, amount in group.resources.items())
        and all(any_of & member.traits for any_of in group.traits.any_of)
        and belongs(group, member.aggregates)
        and not group.aggregates.none_of & member.aggregates
    )


def supply_by_member(group: Group, member: Member) -> Match:
    if not group.resources:
        return ((member.name, None, 0),)
    return tuple((member.name, class_, amount) for class_, amount in group.resources.items())


def supplies_of_unsuffixed(world: World, group: Group, anchor: str, usable: list[Member]) -> Iterator[Match]:
    """Yield every way to take each class from any provider; the providers together have the required traits."""
    root = world.members[anchor]
    if group.aggregates.none_of & root.aggregates:
        return
    eligible = []
    for member in usable:
        spanned = world.root(member.name) == anchor and belongs(group, root.aggregates)
        if (belongs(group, member.aggregates) or spanned) and not group.aggregates.none_of & member.aggregates:
            eligible.append(member)
    choices = [
        [member for member in eligible if fits(member, class_, amount)] for class_, amount in group.resources.items()
    ]
    for suppliers in itertools.product(*choices):
        traits = frozenset().union(*(member.traits for member in suppliers))
        if all(any_of & traits for any_of in group.traits.any_of):
            pairs = zip(suppliers, group.resources.items(), strict=True)
            yield tuple((member.name, class_, amount) for member, (class_, amount) in pairs)


# --- all groups together ---


def allowed(world: World, query: SearchQuery, combination: tuple[Match, ...]) -> bool:
    used = {
        group.suffix: {name for name, _, _ in match} for group, match in zip(query.groups, combination, strict=True)
    }
    suffixed = [name for suffix, names in used.items() if suffix for name in names]
    if query.isolate and len(suffixed) > len(set(suffixed)):
        return False
    for suffixes in query.same_subtrees:
        names = set().union(*(used[suffix] for suffix in suffixes))
        if not any(all(top in world.ancestry(name) for name in names) for top in names):
            return False
    sums = sum_amounts(combination)
    if not query.nested:
        roots = [world.root(name) for name in {name for name, _ in sums}]
        if len(roots) > len(set(roots)):
            return False
    return all(sum_fits(world.members[name], class_, amount) for (name, class_), amount in sums.items())


def sum_amounts(combination: tuple[Match, ...]) -> Counter[tuple[str, str]]:
    sums: Counter[tuple[str, str]] = Counter()
    for match in combination:
        for name, class_, amount in match:
            if class_ is not None:
                sums[name, class_] += amount
    return sums


def sum_fits(member: Member, class_: str, amount: int) -> bool:
    stock = member.stock[class_]
    capacity = math.floor((stock.total - stock.reserved) * stock.allocation_ratio)
    return stock.used + amount <= capacity and amount <= stock.effective_max_unit


def as_candidate(query: SearchQuery, combination: tuple[Match, ...]) -> Candidate:
    return (
        frozenset((name, class_, amount) for (name, class_), amount in sum_amounts(combination).items()),
        frozenset(
            (group.suffix, frozenset(name for name, _, _ in match))
            for group, match in zip(query.groups, combination, strict=True)
        ),
    )
