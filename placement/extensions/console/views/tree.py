"""Provider trees for display: one line per provider, depth first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from placement.extensions.console.views.cloud import DISABLED, ProviderName, provider_name
from placement.extensions.console.views.level import ClassLevel, levels_of
from placement.extensions.v1.overview.trees import depth_first
from placement.index.snapshot import SHARES, Snapshot

#: Maximum number of providers shown per tree.
MAX_PROVIDERS = 200


@dataclass(frozen=True, slots=True)
class DrawnProvider:
    """A provider in a drawn tree.

    Attributes:
        depth: 0 for the root.
        amounts_taken: Amounts that a candidate takes from the provider, by class.
        groups: Suffixes of the query groups that the provider serves.
    """

    uuid: str
    name: str
    depth: int
    generation: int
    levels: tuple[ClassLevel, ...]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    amounts_taken: Mapping[str, int]
    groups: tuple[str, ...]

    @property
    def shares(self) -> bool:
        """Whether the provider shares its inventory with other trees by aggregate."""
        return SHARES in self.traits

    @property
    def is_disabled(self) -> bool:
        """Whether no new servers are scheduled on the provider."""
        return DISABLED in self.traits


@dataclass(frozen=True, slots=True)
class DrawnTree:
    """A tree for display, and the number of providers left out."""

    root: ProviderName
    providers: tuple[DrawnProvider, ...]
    omitted: int
    #: Whether no new servers are scheduled on the root.
    is_disabled: bool


def draw(snapshot: Snapshot, slot: int, max_providers: int = MAX_PROVIDERS) -> DrawnTree:
    """Return the tree of a provider, which always includes the provider and its ancestors."""
    return _draw(snapshot, snapshot.provider(slot).root, set(snapshot.ancestry(slot)), max_providers)


def draw_used(
    snapshot: Snapshot, root: int, amounts_taken: Mapping[int, Mapping[str, int]], groups: Mapping[int, tuple[str, ...]]
) -> DrawnTree:
    """Return the providers of a tree that a candidate uses, with their ancestors."""
    used = [slot for slot in {*amounts_taken, *groups} if snapshot.provider(slot).root == root]
    slots = {ancestor for slot in used for ancestor in snapshot.ancestry(slot)}
    return _draw(snapshot, root, slots, len(slots), amounts_taken, groups)


def _draw(
    snapshot: Snapshot,
    root: int,
    required: Collection[int],
    max_providers: int,
    amounts_taken: Mapping[int, Mapping[str, int]] | None = None,
    groups: Mapping[int, tuple[str, ...]] | None = None,
) -> DrawnTree:
    amounts_taken, groups = amounts_taken or {}, groups or {}
    optional = max_providers - len(required)
    providers = []
    for slot, depth in _with_depth(snapshot, root):
        if slot not in required:
            optional -= 1
            if optional < 0:
                continue
        provider = snapshot.provider(slot)
        providers.append(
            DrawnProvider(
                *provider_name(snapshot, slot),
                depth=depth,
                generation=snapshot.generations.item(slot),
                levels=levels_of(snapshot, slot),
                traits=tuple(sorted(provider.traits)),
                aggregates=tuple(sorted(provider.aggregates)),
                amounts_taken=amounts_taken.get(slot, {}),
                groups=groups.get(slot, ()),
            )
        )
    omitted = len(snapshot.forest.tree(root)) - len(providers)
    return DrawnTree(
        provider_name(snapshot, root), tuple(providers), omitted, DISABLED in snapshot.provider(root).traits
    )


def _with_depth(snapshot: Snapshot, root: int) -> Iterator[tuple[int, int]]:
    """Yield the slot and depth of each provider of a tree, depth first."""
    depths = {-1: -1}
    for slot in depth_first(snapshot, root):
        depths[slot] = depths[snapshot.provider(slot).parent] + 1
        yield slot, depths[slot]
