"""Every generator of random worlds and requests.  Few draws each: small numbers are taken apart into facts."""

from __future__ import annotations

from hypothesis import strategies as st

from placement.index.snapshot import SHARES
from tests.world import Stock, World

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("T0", "T1", "T2")
AGGREGATES = ("A0", "A1", "A2")
NAMES = tuple(f"p{number}" for number in range(9))

RATIOS = (1.0, 1.0, 1.5, 0.5)


def some(of: tuple[str, ...], bits: int) -> list[str]:
    """Those of the names whose bit is set."""
    return [name for place, name in enumerate(of) if bits >> place & 1]


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    """A little of something, mostly plain, now and then nearly used up or with rules of its own."""
    total = draw(st.integers(1, 6))
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
    """Put a provider with random facts into the world; it keeps its parent if it is there, or finds one at random."""
    roots_or_parents = [other for other in world.members if other != name and name not in world.ancestry(other)]
    place = draw(st.integers(-2, len(roots_or_parents) - 1))
    having = draw(st.integers(0, 2 ** len(CLASSES) - 1))
    # Bits beyond the names: whether it shares.
    traits = draw(st.integers(0, 2 ** (len(TRAITS) + 2) - 1))
    world.host(
        name,
        parent=roots_or_parents[place] if place >= 0 else None,
        traits=some(TRAITS, traits) + ([SHARES] if traits >> len(TRAITS) == 3 else []),
        aggregates=some(AGGREGATES, draw(st.integers(0, 2 ** len(AGGREGATES) - 1))),
        generation=draw(st.integers(0, 3)),
        **{class_: draw(stocks()) for class_ in some(CLASSES, having)},
    )


@st.composite
def worlds(draw: st.DrawFn, most: int = 7) -> World:
    """A forest of up to so many providers."""
    world = World()
    for class_ in CLASSES:
        world.classes[class_] = len(world.classes)
    for name in NAMES[: draw(st.integers(1, most))]:
        draw(members(world, name))
    return world
