"""Hypothesis strategies for worlds and queries, which draw little: the bits of a number determine several facts."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import assume, settings
from hypothesis import strategies as st

from placement.index.snapshot import SHARES
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.world import Stock, World

#: The number of examples of a test in the active profile.
_EXAMPLES = settings().max_examples


def scale(number: int) -> int:
    """Scale a number of examples from a profile of 100 to the active profile; return at least 1."""
    return max(1, number * _EXAMPLES // 100)


def examples(number: int) -> settings:
    """Return settings with this number of examples, scaled by the profile."""
    return settings(max_examples=scale(number))


CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("T0", "T1", "T2")
AGGREGATES = ("A0", "A1", "A2")
SUFFIXES = ("1", "2", "3")
NAMES = tuple(f"p{number}" for number in range(9))

RATIOS = (1.0, 1.0, 1.5, 0.5)


def names_at_bits(names: tuple[str, ...], bits: int) -> list[str]:
    """Return the names whose bit is set."""
    return [name for place, name in enumerate(names) if bits >> place & 1]


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    """Draw a small inventory, mostly plain, sometimes nearly full or with units."""
    total = draw(st.sampled_from((4, 8, 3, 2, 1)))
    odd = draw(st.integers(0, 15))
    return Stock(
        total=total,
        used=draw(st.integers(0, total)) if odd & 1 else 0,
        reserved=1 if odd == 2 and total > 1 else 0,
        max_unit=draw(st.integers(1, total)) if odd in (4, 5, 6) else None,
        min_unit=2 if odd == 8 and total > 1 else 1,
        step_size=2 if odd in (10, 11) and total > 1 else 1,
        allocation_ratio=RATIOS[odd // 3 % len(RATIOS)],
    )


@st.composite
def members(draw: st.DrawFn, world: World, name: str) -> None:
    """Put a provider with random facts and a random parent into the world."""
    roots_or_parents = [other for other in world.members if other != name and name not in world.ancestry(other)]
    place = draw(st.integers(-2, len(roots_or_parents) - 1))
    having = draw(st.sampled_from((7, 7, 6, 5, 3, 4, 2, 1, 0)))
    # Bits beyond the names: whether it shares.
    traits = draw(st.integers(0, 2 ** (len(TRAITS) + 2) - 1))
    world.host(
        name,
        parent=roots_or_parents[place] if place >= 0 else None,
        traits=names_at_bits(TRAITS, traits) + ([SHARES] if traits >> len(TRAITS) == 3 else []),
        aggregates=names_at_bits(AGGREGATES, draw(st.integers(0, 2 ** len(AGGREGATES) - 1))),
        generation=draw(st.integers(0, 3)),
        **{class_: draw(stocks()) for class_ in names_at_bits(CLASSES, having)},
    )


@st.composite
def worlds(draw: st.DrawFn, max_providers: int = 7) -> World:
    """Draw a forest with a maximum number of providers."""
    world = World()
    for class_ in CLASSES:
        world.classes[class_] = len(world.classes)
    for name in NAMES[: draw(st.integers(1, max_providers))]:
        draw(members(world, name))
    return world


# --- search queries ---


def any_of(source: tuple[str, ...], bits: int) -> tuple[frozenset[str], ...]:
    """Return one or two sets of up to three names, from nine bits."""
    sets = [frozenset(names_at_bits(source, bits & 7)), frozenset(names_at_bits(source, bits >> 3 & 7))]
    return tuple(dict.fromkeys(names for names in sets[: 1 + (bits >> 6) // 5] if names))


#: The rules that a group may have in addition to its resources; a query favours one of them.
RULES = ("required", "forbidden", "member_of", "not_member_of", "in_tree")


@st.composite
def groups(draw: st.DrawFn, world: World, suffix: str, resources: dict[str, int], favourite: str) -> Group:
    """Draw a group, mostly with resources only."""
    odds = draw(st.integers(0, 63))
    rules = {favourite} & {*RULES} if odds & 1 else set()
    if odds & 6 == 6:
        rules.add(RULES[odds >> 3 if odds >> 3 < len(RULES) else 0])
    if not resources and not rules:
        # An empty group cannot be expressed.
        rules = {"required"}
    required = any_of(TRAITS, draw(st.integers(1, 511))) if "required" in rules else ()
    forbidden = draw(st.integers(1, 7)) if "forbidden" in rules else 0
    forbidden_traits = frozenset(names_at_bits(TRAITS, forbidden))
    return Group(
        suffix,
        resources,
        # The parser refuses a set whose members are all forbidden.
        traits=NameCondition(tuple(names for names in required if not names <= forbidden_traits), forbidden_traits),
        aggregates=NameCondition(
            any_of(AGGREGATES, draw(st.integers(1, 511))) if "member_of" in rules else (),
            frozenset(names_at_bits(AGGREGATES, draw(st.integers(1, 7)) if "not_member_of" in rules else 0)),
        ),
        in_tree=draw(st.sampled_from([*world.members, "unknown"])) if "in_tree" in rules else None,
    )


#: The classes of a group, and the groups of a query, as bits: mostly few.
CLASS_BITS = (1, 2, 4, 1, 2, 4, 3, 5, 6, 7, 1, 0)
GROUP_BITS = (1, 3, 6, 1, 2, 3, 5, 6, 7, 7, 10, 11, 14, 15)


@st.composite
def search_queries(draw: st.DrawFn, world: World, max_suffixed: int = 4) -> SearchQuery:
    """Draw a query for small amounts, which mostly has candidates."""
    suffixes = ["", *SUFFIXES][: max_suffixed + 1]
    group_bits = draw(st.sampled_from(GROUP_BITS)) & (2 ** len(suffixes) - 1) or 1
    favourite = draw(st.sampled_from((*RULES, "none", "none")))
    query_groups = []
    for suffix in names_at_bits(tuple(suffixes), group_bits):
        having = draw(st.sampled_from(CLASS_BITS if suffix else CLASS_BITS[:-1]))
        amounts = draw(st.integers(0, 2**6 - 1))
        resources = {
            name: 1 + (amounts >> 2 * place & 3) // 2 for place, name in enumerate(names_at_bits(CLASSES, having))
        }
        query_groups.append(draw(groups(world, suffix, resources, favourite)))
    if not any(group.resources for group in query_groups):
        query_groups[0] = replace(query_groups[0], resources={CLASSES[0]: 1})
    subtrees = []
    for names in draw(st.lists(st.integers(1, 7), max_size=2)):
        members = frozenset(group.suffix for group in query_groups if group.suffix) & {*names_at_bits(SUFFIXES, names)}
        subtrees.append(members)
    idle = frozenset(group.suffix for group in query_groups if not group.resources)
    if idle and not any(idle <= members for members in subtrees):
        subtrees.append(idle | subtrees.pop() if subtrees else idle)
    roots = draw(st.integers(0, 127))
    required, forbidden = (roots & 7, roots >> 3 & 7) if roots >= 116 else (0, 0)
    return SearchQuery(
        tuple(query_groups),
        isolate=draw(st.booleans()),
        same_subtrees=tuple(dict.fromkeys(members for members in subtrees if members)),
        root_traits=NameCondition(
            tuple(frozenset({trait}) for trait in names_at_bits(TRAITS, required & ~forbidden)),
            frozenset(names_at_bits(TRAITS, forbidden)),
        ),
        nested=draw(st.integers(0, 5)) < 5,
    )


# --- trees with little capacity ---


@st.composite
def crowds(draw: st.DrawFn) -> World:
    """Draw one or two trees of providers of one class with little capacity, sometimes with sharing providers."""
    world = World()
    for class_ in CLASSES[:2]:
        world.classes[class_] = len(world.classes)
    for number, name in enumerate(NAMES[: draw(st.integers(2, 6))]):
        place = draw(st.integers(-1, number - 1)) if number else -1
        total, max_unit = draw(st.sampled_from(((1, 1), (2, 2), (1, 1), (2, 1), (3, 2), (0, 0))))
        world.host(
            name,
            parent=NAMES[place] if place >= 0 else None,
            traits=names_at_bits(TRAITS, draw(st.sampled_from((1, 2, 3, 0)))),
            aggregates=["A0"] if place < 0 else [],
            **({"VCPU": Stock(total, max_unit=max_unit)} if total else {}),
            **({"MEMORY_MB": Stock(1)} if draw(st.booleans()) else {}),
        )
    if draw(st.integers(0, 3)) == 3:
        for name in draw(st.sampled_from((["s0"], ["s0", "s1"]))):
            world.sharing(name, aggregates=["A0"], VCPU=draw(st.integers(1, 2)))
    return world


@st.composite
def crowded_queries(draw: st.DrawFn) -> SearchQuery:
    """Draw a query of several similar groups, with rules between them."""
    suffixes = SUFFIXES[: draw(st.sampled_from((2, 3, 3)))]
    query_groups = []
    for suffix in suffixes:
        kind = draw(st.integers(0, 15))
        resources = {"VCPU": 2 if kind == 1 else 1} if kind < 13 else {"MEMORY_MB": 1}
        required = (frozenset(names_at_bits(TRAITS, 1 + kind % 2)),) if kind in (4, 5) else ()
        query_groups.append(Group(suffix, {} if kind == 12 else resources, NameCondition(required)))
    if draw(st.integers(0, 2)) == 2:
        resources = draw(st.sampled_from(({"VCPU": 1}, {"VCPU": 1, "MEMORY_MB": 1}, {"MEMORY_MB": 1})))
        required = any_of(TRAITS[:2], draw(st.sampled_from((0, 1, 2, 3, 1 + 16 + 320))))
        query_groups.append(Group("", resources, NameCondition(required)))
    if not any(group.resources for group in query_groups):
        query_groups[0] = Group(suffixes[0], {"VCPU": 1})
    subtrees = draw(st.lists(st.sampled_from((3, 5, 6, 7)), max_size=2, unique=True))
    sets = [frozenset(names_at_bits(SUFFIXES, names)) & {*suffixes} for names in subtrees]
    idle = frozenset(group.suffix for group in query_groups if not group.resources)
    return SearchQuery(
        tuple(query_groups),
        isolate=draw(st.booleans()),
        same_subtrees=tuple(dict.fromkeys(names for names in [*sets, idle] if names)),
        nested=draw(st.integers(0, 7)) < 7,
    )


@st.composite
def explanation_cases(draw: st.DrawFn) -> tuple[World, SearchQuery]:
    """Draw a world, and a query that often has no candidate in it; each of its groups is in its text."""
    if draw(st.integers(0, 2)) == 0:
        world, query = draw(crowds()), draw(crowded_queries())
    else:
        world = draw(worlds())
        query = draw(search_queries(world, max_suffixed=2))
    factors = st.sampled_from((1, 1, 2, 3, 5))
    groups = tuple(
        replace(group, resources={name: amount * draw(factors) for name, amount in group.resources.items()})
        for group in query.groups
    )
    assume(all(group != Group(group.suffix, {}) for group in groups))
    limit = draw(st.sampled_from((None, None, None, None, 1, 2)))
    return world, replace(query, groups=groups, nested=True, limit=limit)


@st.composite
def similar_trees(draw: st.DrawFn, max_copies: int = 4) -> World:
    """Draw copies of one or two small trees; in some copies a provider has other traits, amounts or parent."""
    original = draw(crowds())
    members = [member for member in original.members.values() if SHARES not in member.traits]
    copies = draw(st.integers(2, max_copies))
    changes = {copy: draw(st.integers(0, 4 * len(members) - 1)) for copy in range(copies)}
    world = World(classes=dict(original.classes))
    places = [(copy, place) for copy in range(copies) for place in range(len(members))]
    if draw(st.booleans()):
        # The slots of the trees are interleaved.
        places.sort(key=lambda copy_and_place: copy_and_place[1])
    for copy, place in places:
        member, (changed_place, change) = members[place], divmod(changes[copy], 4)
        parent, stock, traits = member.parent, dict(member.stock), member.traits
        if changed_place == place and change == 1:
            traits ^= {draw(st.sampled_from(TRAITS[:2]))}
        elif changed_place == place and change == 2:
            stock["VCPU"] = Stock(draw(st.integers(1, 3)))
        elif changed_place == place and change == 3 and parent is not None:
            parent = members[draw(st.integers(0, place - 1))].name
        world.host(
            f"{member.name}-{copy}",
            parent=None if parent is None else f"{parent}-{copy}",
            traits=traits,
            aggregates=member.aggregates,
            **stock,
        )
    return world


def device_host(order: random.Random) -> tuple[World, SearchQuery]:
    """Return a host with up to 16 devices, and up to four groups that may use any device.

    Not drawn by Hypothesis, whose examples mostly have few and equal devices.
    """
    classes = order.choice((("PGPU",), ("PGPU",), ("PGPU", "VGPU")))
    world = World()
    world.host("host")
    for number in range(order.randint(1, 16)):
        world.host(f"device{number}", parent="host", **{name: order.randint(1, 6) for name in classes})
    groups = [
        Group(str(number), {name: order.randint(1, 3) for name in classes[: order.randint(1, 2)]})
        for number in range(order.randint(1, 4))
    ]
    return world, SearchQuery(tuple(groups), isolate=order.random() < 0.7)
