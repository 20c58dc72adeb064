"""Queries that took gigabytes or minutes before searches had budgets, and worlds for them.

Some query strings have the greatest length that an operator can configure, 64 KiB.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from placement.index.snapshot import Snapshot
from tests.world import World


class CostlyQuery(NamedTuple):
    """A query string and the world that it searches."""

    #: Cached, since several queries search the same world.
    world: Callable[[], Snapshot]
    query: str
    minor: int = 39


class Large(World):
    """A world that adds a provider in constant time."""

    def host(self, name: str, parent: str | None = None, **more: Any) -> None:  # type: ignore[override]
        self.ids[name] = len(self.ids) + 1
        super().host(name, parent, **more)


def uuid(number: int) -> str:
    return f"0b7e0000-0000-4000-8000-{number:012x}"


@functools.cache
def line(depth: int) -> Snapshot:
    """Return one tree in which each provider is the child of the previous one."""
    members: list[tuple[int, int | None]] = [(number, number - 1 if number else None) for number in range(depth)]
    return _nested(members)


@functools.cache
def star(count: int) -> Snapshot:
    """Return one tree of a root and ``count - 1`` children."""
    return _nested([(number, 0 if number else None) for number in range(count)])


@functools.cache
def deep_tree(count: int) -> Snapshot:
    """Return a deep tree in which a provider can have several children."""
    chance = random.Random(1)
    return _nested(
        [(number, chance.randint(max(number - 3, 0), number - 1) if number else None) for number in range(count)]
    )


def _nested(members: list[tuple[int, int | None]]) -> Snapshot:
    world = Large()
    # Avoids a walk over thousands of ancestors for each provider.
    world.root = lambda _name: uuid(0)  # type: ignore[method-assign]
    for number, parent in members:
        world.host(uuid(number), None if parent is None else uuid(parent), VCPU=8, MEMORY_MB=64, DISK_GB=64, PGPU=4)
    return world.snapshot()


@functools.cache
def hosts(count: int, children: int, traits: int = 3) -> Snapshot:
    """Return hosts with ``traits`` traits and ``children`` children each."""
    world = Large()
    names = [f"CUSTOM_TRAIT_WITH_A_NAME_{number}" for number in range(traits)]
    for host in range(count):
        top = uuid(host * 1000)
        world.host(top, VCPU=64, MEMORY_MB=262_144, DISK_GB=4000, traits=names, aggregates=[uuid(host % 50)])
        for child in range(1, children + 1):
            world.host(uuid(host * 1000 + child), top, VGPU=8, PGPU=1, traits=names[:3])
    return world.snapshot()


@functools.cache
def shared_pools(hosts: int, pools: int) -> Snapshot:
    """Return hosts and pools; every pool shares with every host."""
    world = Large()
    for host in range(hosts):
        # The amounts of disk differ, so that no two trees have the same canonical form.
        world.host(uuid(host), VCPU=64, MEMORY_MB=4096, DISK_GB=100 + host, aggregates=["A", f"B{host}"])
    for pool in range(pools):
        more = {"IPV4_ADDRESS": 100}
        world.sharing(uuid(10**6 + pool), DISK_GB=10_000 + pool, aggregates=["A", f"B{pool}"], **more)
    return world.snapshot()


@functools.cache
def classes(providers: int, count: int) -> Snapshot:
    """Return one tree whose providers have ``count`` resource classes each."""
    world = Large()
    stock = {f"CUSTOM_{number}": 50 + number for number in range(count)}
    for number in range(providers):
        world.host(uuid(number), uuid(0) if number else None, **stock)
    return world.snapshot()


def groups(count: int, resources: Callable[[int], str], policy: str = "none") -> str:
    return "&".join(f"resources_{number}={resources(number)}" for number in range(count)) + f"&group_policy={policy}"


def pairs(count: int) -> str:
    return "".join(f"&same_subtree=_{number},_{number + 1}" for number in range(count - 1))


def _many_classes(number: int) -> str:
    return ",".join(f"CUSTOM_{(number * 7 + step) % 40}:1" for step in range(8))


def _listed_names(count: int, name: Callable[[int], str]) -> str:
    return ",".join(map(name, range(count)))


def queries(scale: int) -> Iterator[tuple[str, CostlyQuery]]:
    """Yield queries by name.

    Args:
        scale: Size of the worlds with many hosts; 10 is the size at which the cost was measured.
    """
    flat = functools.partial(hosts, 1000 * scale, 0)
    deep, wide = functools.partial(line, 3000), functools.partial(star, 5000)
    host = functools.partial(star, 85)
    yield "a hundred groups in pairs", CostlyQuery(deep, groups(100, lambda _: "VCPU:1") + pairs(100))
    yield (
        "pairs of different amounts",
        CostlyQuery(deep, groups(100, lambda n: f"VCPU:{1 + n % 7}") + pairs(100) + "&limit=10"),
    )
    yield "pairs that do not fit", CostlyQuery(deep, groups(100, lambda n: f"VCPU:{1 + n % 8}", "isolate") + pairs(100))
    yield "256 groups", CostlyQuery(host, groups(256, lambda _: "VCPU:1"))
    yield "256 unequal groups", CostlyQuery(host, groups(256, lambda n: f"VCPU:{1 + n % 3},MEMORY_MB:{1 + n // 8}"))
    yield (
        "256 groups that just fit",
        CostlyQuery(host, groups(256, lambda n: f"VCPU:{2 + n % 2},MEMORY_MB:{n % 40 + 1}")),
    )
    yield (
        "256 groups of four classes",
        CostlyQuery(
            host, groups(256, lambda n: f"VCPU:{1 + n % 3},MEMORY_MB:{1 + n % 31},DISK_GB:{1 + n % 29},PGPU:1")
        ),
    )
    tree_of_many_classes = functools.partial(classes, 85, 40)
    yield "256 groups of many classes", CostlyQuery(tree_of_many_classes, groups(256, _many_classes))
    yield (
        "250 isolated groups",
        CostlyQuery(functools.partial(star, 260), groups(250, lambda n: f"VCPU:{1 + n % 8}", "isolate")),
    )
    two = groups(2, lambda n: f"VCPU:{n + 1}")
    for name, world in (
        ("line", functools.partial(line, 5000)),
        ("tree", functools.partial(deep_tree, 5000)),
    ):
        yield f"two groups in a deep {name}", CostlyQuery(world, f"{two}&limit=10")
        yield f"two groups in a deep {name}, together", CostlyQuery(world, f"{two}&same_subtree=_0,_1&limit=10")
        yield f"two groups in a deep {name}, all", CostlyQuery(world, f"{two}&same_subtree=_0,_1")
        yield f"one provider of a deep {name}", CostlyQuery(world, "resources=VCPU:1,MEMORY_MB:1&limit=10", 28)
    yield "two groups in a wide tree", CostlyQuery(wide, two)
    yield "three isolated groups in a wide tree", CostlyQuery(wide, groups(3, lambda n: f"VCPU:{n + 1}", "isolate"))
    yield "a wide tree that is nearly full", CostlyQuery(wide, groups(200, lambda n: f"VCPU:{5 + n % 4}", "isolate"))
    shared = functools.partial(shared_pools, 100 * scale, 10 * scale)
    yield "shared disks", CostlyQuery(shared, "resources=VCPU:1,DISK_GB:1")
    yield "shared disks and addresses", CostlyQuery(shared, "resources=DISK_GB:1,IPV4_ADDRESS:1")
    yield "three shared disks", CostlyQuery(shared, groups(3, lambda n: f"DISK_GB:{n + 1}"))
    yield "many shared disks", CostlyQuery(shared, groups(100, lambda n: f"DISK_GB:{n + 1}", "isolate"))
    yield "hosts with many children", CostlyQuery(functools.partial(hosts, 200 * scale, 85), "resources=VCPU:1")
    yield "hosts with many traits", CostlyQuery(functools.partial(hosts, 400 * scale, 0, 300), "resources=VCPU:1")
    yield "all hosts", CostlyQuery(flat, "resources=VCPU:1,MEMORY_MB:1,DISK_GB:1")
    yield "256 groups of many hosts", CostlyQuery(flat, groups(256, lambda n: f"VCPU:{1 + n % 64},MEMORY_MB:{n + 1}"))
    required = _listed_names(2200, lambda n: f"CUSTOM_TRAIT_WITH_A_NAME_{n % 3}")
    yield "one trait, repeated", CostlyQuery(flat, f"resources=VCPU:1&required={required}&limit=10")
    repeated = "&".join(["required=CUSTOM_TRAIT_WITH_A_NAME_0"] * 1800)
    yield "one trait in many parameters", CostlyQuery(flat, f"resources=VCPU:1&{repeated}&limit=10")
    short = "&".join(["required=A"] * 5900)
    yield "5,900 times required", CostlyQuery(flat, f"resources=VCPU:1&{short}&limit=10")
    trees = "&".join([f"in_tree={uuid(0)}"] * 1400)
    yield "in_tree, repeated", CostlyQuery(flat, f"resources=VCPU:1&{trees}&limit=10")
    members = "&".join([f"member_of={uuid(0)}"] * 1350)
    yield "member_of, repeated", CostlyQuery(flat, f"resources=VCPU:1&{members}&limit=10")
    outside = "&".join(f"member_of=!{uuid(number)}" for number in range(1, 1350))
    yield "outside many aggregates", CostlyQuery(flat, f"resources=VCPU:1&{outside}&limit=10")
    inside = _listed_names(1700, uuid)
    yield "in one of many aggregates", CostlyQuery(flat, f"resources=VCPU:1&member_of=in:{inside}&limit=10")
    rare = "&".join(f"required_{n}=A{n}&resources_{n}=VCPU:1" for n in range(250))
    yield "groups with traits that no provider has", CostlyQuery(flat, f"{rare}&group_policy=none&limit=10")
    yield "4,500 resource classes", CostlyQuery(flat, "resources=" + _listed_names(4500, lambda n: f"CUSTOM_{n}:1"))
