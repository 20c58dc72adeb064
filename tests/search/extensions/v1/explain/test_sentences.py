"""Each sentence of an explanation, with a cloud that causes it; docs/extensions/explain.rst lists all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from placement.extensions.v1.explain import sentence
from placement.extensions.v1.explain.explain import explain
from placement.search.find import Settings
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search.test_combine import EVEN
from tests.world import Stock, World

PAGE = Path(__file__).parents[5] / "docs/extensions/explain.rst"
TITLE = "Sentences of the summary"
CASES: dict[str, Callable[[], str]] = {}


def case(meaning: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register a function that returns a sentence, under its meaning."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        CASES[meaning] = function
        return function

    return register


def summary(world: World, *groups: Group, settings: Settings | None = None, **more: object) -> str:
    return explain(SearchQuery(groups, **more), world.snapshot(), settings).summary  # type: ignore[arg-type]


def hosts(*stocks: Stock | int) -> World:
    world = World()
    for number, stock in enumerate(stocks, 1):
        world.host(f"host{number}", VCPU=stock)
    return world


def vcpu(amount: int, suffix: str = "", *traits: str) -> Group:
    return Group(suffix, {"VCPU": amount}, NameCondition(tuple(frozenset({name}) for name in traits)))


@case("There are candidates")
def summary_of_candidates() -> str:
    return summary(hosts(8, 8), vcpu(4))


@case("There are no providers")
def summary_of_no_providers() -> str:
    return summary(World(), vcpu(4))


@case("No provider has inventory of the class")
def summary_of_absent() -> str:
    return summary(hosts(8, 8), Group("", {"PGPU": 1}))


@case("The inventories are too small even when empty")
def summary_of_total() -> str:
    return summary(hosts(8, 6), vcpu(12))


@case("Reserved capacity is in the way")
def summary_of_reserved() -> str:
    return summary(hosts(Stock(8, reserved=4)), vcpu(6))


@case("Allocated capacity is in the way")
def summary_of_used() -> str:
    return summary(hosts(Stock(8, used=5), Stock(8, used=6)), vcpu(4))


@case("The amount is above max_unit")
def summary_of_max_unit() -> str:
    return summary(hosts(Stock(64, max_unit=8), Stock(64, max_unit=4)), vcpu(12))


@case("The amount is below min_unit")
def summary_of_min_unit() -> str:
    return summary(hosts(Stock(8, min_unit=2)), vcpu(1))


@case("The amount is not a multiple of step_size")
def summary_of_step_size() -> str:
    return summary(hosts(Stock(8, step_size=4), Stock(8, step_size=4)), vcpu(6))


@case("No remaining provider meets a rule about providers")
def summary_of_providers() -> str:
    world = World()
    for name in ("host1", "host2"):
        world.host(name, VCPU=8, traits=["HW_GPU"])
    return summary(world, replace(vcpu(4, "_1"), traits=NameCondition((), frozenset({"HW_GPU"}))))


@case("No provider has the trait")
def summary_of_unknown_trait() -> str:
    return summary(hosts(8, 8), vcpu(4, "_1", "HW_GPU"))


@case("No remaining tree meets a rule about trees")
def summary_of_trees() -> str:
    world = hosts(8, 8)
    world.host("gpu", parent="host1", traits=["HW_GPU"])
    return summary(world, vcpu(4), root_traits=NameCondition((frozenset({"HW_GPU"}),)))


@case("The service avoids the trees that fit")
def summary_of_avoided() -> str:
    world = World()
    world.host("host", VCPU=8, traits=["COMPUTE_STATUS_DISABLED"])
    return summary(world, vcpu(4), avoided=frozenset({"COMPUTE_STATUS_DISABLED"}))


@case("A part of the request fits only in other trees")
def summary_of_other_trees() -> str:
    world = World()
    world.host("host", aggregates=["zone", "rack"], VCPU=8)
    world.host("other", aggregates=["zone"])
    # In its own tree the pool counts as a member of the zone, but not where it shares.
    world.sharing("pool", parent="other", aggregates=["rack"], DISK_GB=100)
    zone = NameCondition((frozenset({"zone"}),))
    return summary(world, Group("", {"VCPU": 4, "DISK_GB": 10}, aggregates=zone))


@case("The groups need different providers")
def summary_of_isolation() -> str:
    return summary(hosts(8, 8), vcpu(1, "_1"), vcpu(1, "_2"), isolate=True)


@case("The groups fit, but not in one subtree")
def summary_of_subtrees() -> str:
    world = hosts(8)
    world.host("gpu", parent="host1", PGPU=1)
    world.host("nic", parent="host1", NET=1)
    groups = Group("_g", {"PGPU": 1}), Group("_n", {"NET": 1})
    return summary(world, *groups, same_subtrees=(frozenset({"_g", "_n"}),))


@case("The amounts fit, but not together")
def summary_of_sums() -> str:
    return summary(hosts(8, 8), vcpu(6, "_1"), vcpu(4, "_2"))


@case("The providers that fit lack some of the traits")
def summary_of_traits() -> str:
    world = hosts(8)
    world.host("numa", parent="host1", traits=["HW_GPU"], VCPU=4)
    world.host("disk", parent="host1", traits=["HW_SSD"], VCPU=4)
    required = NameCondition((frozenset({"HW_GPU"}), frozenset({"HW_SSD"})))
    return summary(world, Group("", {"VCPU": 4}, required))


@case("The search budget was too small")
def summary_of_work() -> str:
    world, capacity = World(), sum(EVEN) // 4
    for host in range(2):
        world.host(f"host{host}")
        for device, amount in enumerate((capacity - 2 * host, capacity + 2 * host, capacity, capacity)):
            world.host(f"host{host}-{device}", parent=f"host{host}", VGPU=amount)
    groups = (Group(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(EVEN))
    return summary(world, *groups, settings=Settings(operations=10_000))


@case("No change helps, and a part of the request is a mistake")
def summary_of_mistakes() -> str:
    return summary(hosts(8), vcpu(12, "_1", "HW_A", "HW_B", "HW_C"))


@case("Not all changes could be tried")
def summary_of_untried_changes() -> str:
    world, names = World(), [f"HW_{number}" for number in range(40)]
    world.host("host", traits=names, VCPU=Stock(9, used=1))
    return summary(world, vcpu(9, "", *names))


@case("No change helps")
def summary_of_no_change() -> str:
    world = hosts(Stock(8, used=6))
    world.host("other", traits=["HW_A", "HW_B", "HW_C"])
    return summary(world, vcpu(4, "_1", "HW_A", "HW_B", "HW_C"))


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield from (".. list-table::", "   :header-rows: 1", "   :widths: 1 3", "", "   * - Meaning", "     - Example")
    for meaning, function in CASES.items():
        yield from (f"   * - {meaning}", f"     - {function()}")


def test_the_page_shows_every_sentence() -> None:
    _, _, section = PAGE.read_text().partition(f"{TITLE}\n{'=' * len(TITLE)}\n")
    parts = section.partition(".. list-table::")
    expected = "\n".join(table())
    assert f"{parts[1]}{parts[2]}".rstrip() == expected, f"The table must be:\n\n{expected}"


def test_one_of_several_providers_is_counted() -> None:
    world = hosts(Stock(8, used=6))
    world.host("other")
    assert ": 1 has too little free capacity, and none can supply more than 2. " in summary(world, vcpu(4))


def test_a_full_provider_has_no_room_at_present() -> None:
    full = Stock(8, used=8)
    assert " it has too little free capacity and has no room for any VCPU at present. " in summary(hosts(full), vcpu(4))
    summary_of_two = summary(hosts(full, full), vcpu(4))
    assert " 2 have too little free capacity, and none has room for any VCPU at present. " in summary_of_two


@pytest.mark.parametrize("why", sentence.PROPERTIES)
def test_every_property_of_an_inventory_is_shown(why: str) -> None:
    text = " ".join(function() for function in CASES.values())
    singular, plural = sentence.PROPERTIES[why]
    assert f"it {singular}" in text or f" {plural}" in text


@pytest.mark.parametrize("why", sentence.TOGETHER)
def test_every_reason_of_combining_is_shown(why: str) -> None:
    text = " ".join(function() for function in CASES.values())
    before, _, after = sentence.TOGETHER[why].partition("{}")
    assert before in text
    assert after in text
