"""A tree of providers, ready to be drawn: a line for each provider, depth first, with its depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from placement.extensions.console.views.cloud import DISABLED, ProviderName, named
from placement.extensions.console.views.level import ClassLevel, levels_of
from placement.extensions.v1.overview.trees import depth_first
from placement.index.snapshot import SHARES, Snapshot

#: A greater tree is drawn in part.
MOST = 200


@dataclass(frozen=True, slots=True)
class DrawnProvider:
    """One line of a drawn tree.

    Args:
        depth: 0 for the root.
        takes: What a candidate takes of the provider, by class; empty for others.
        groups: The groups of the query that it serves, by suffix.
    """

    uuid: str
    name: str
    depth: int
    generation: int
    levels: tuple[ClassLevel, ...]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    takes: Mapping[str, int]
    groups: tuple[str, ...]

    @property
    def shares(self) -> bool:
        """Whether its inventory serves other trees, by aggregate."""
        return SHARES in self.traits

    @property
    def is_disabled(self) -> bool:
        """Whether it gets no new servers."""
        return DISABLED in self.traits


@dataclass(frozen=True, slots=True)
class DrawnTree:
    """A tree, and how many of its providers are not drawn."""

    root: ProviderName
    providers: tuple[DrawnProvider, ...]
    omitted: int
    #: Whether the root gets no new servers.
    is_disabled: bool


def draw(snapshot: Snapshot, slot: int, most: int = MOST) -> DrawnTree:
    """Return the tree of a provider; the provider and its ancestors are always drawn."""
    return _drawn(snapshot, snapshot.provider(slot).root, set(snapshot.ancestry(slot)), most)


def draw_used(
    snapshot: Snapshot, root: int, takes: Mapping[int, Mapping[str, int]], groups: Mapping[int, tuple[str, ...]]
) -> DrawnTree:
    """Return the providers of a tree that a candidate uses, with their ancestors."""
    used = [slot for slot in {*takes, *groups} if snapshot.provider(slot).root == root]
    shown = {ancestor for slot in used for ancestor in snapshot.ancestry(slot)}
    return _drawn(snapshot, root, shown, len(shown), takes, groups)


def _drawn(
    snapshot: Snapshot,
    root: int,
    always: Collection[int],
    most: int,
    takes: Mapping[int, Mapping[str, int]] | None = None,
    groups: Mapping[int, tuple[str, ...]] | None = None,
) -> DrawnTree:
    takes, groups = takes or {}, groups or {}
    room = most - len(always)
    lines = []
    for slot, depth in _with_depth(snapshot, root):
        if slot not in always:
            room -= 1
            if room < 0:
                continue
        provider = snapshot.provider(slot)
        lines.append(
            DrawnProvider(
                *named(snapshot, slot),
                depth=depth,
                generation=int(snapshot.generations[slot]),
                levels=levels_of(snapshot, slot),
                traits=tuple(sorted(provider.traits)),
                aggregates=tuple(sorted(provider.aggregates)),
                takes=takes.get(slot, {}),
                groups=groups.get(slot, ()),
            )
        )
    omitted = len(snapshot.forest.tree(root)) - len(lines)
    return DrawnTree(named(snapshot, root), tuple(lines), omitted, DISABLED in snapshot.provider(root).traits)


def _with_depth(snapshot: Snapshot, root: int) -> Iterator[tuple[int, int]]:
    """Yield each provider of a tree with its depth, depth first."""
    depths = {-1: -1}
    for slot in depth_first(snapshot, root):
        depths[slot] = depths[snapshot.provider(slot).parent] + 1
        yield slot, depths[slot]
