"""Parents and roots of all providers, and what is wrong with them: rows that other programs or lost commits left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from placement.db.writes.transaction import Reading
from placement.objects.ancestry import CycleError, find_root


@dataclass(frozen=True, slots=True)
class Lineage:
    """The parents and roots of all providers, as of one committed state; ids in ascending order."""

    #: The parent of each provider, by id; None for a root.
    parents: Mapping[int, int | None]
    #: The root that the row of each provider has, by id.
    roots: Mapping[int, int | None]
    #: The root that each provider should have, by id; without those that are below an orphan or a loop.
    right: Mapping[int, int]
    #: Providers without a root, and providers with another root than the right one.
    rootless: Sequence[int]
    wrong: Sequence[int]
    #: Providers whose parent does not exist.
    orphans: Sequence[int]
    #: The providers of each loop, each followed by its parent.
    loops: Sequence[Sequence[int]]

    @classmethod
    def read(cls, db: Reading) -> Lineage:
        """Return those of the database, by one statement."""
        rows = db.execute(_ENDS).all()
        parents = {row.id: row.parent_provider_id for row in rows}
        orphans = [
            row.id for row in rows if row.parent_provider_id is not None and row.parent_provider_id not in parents
        ]
        root_of = {orphan: orphan for orphan in orphans}
        loops = []
        for provider in parents:
            try:
                find_root(provider, parents.__getitem__, root_of)
            except CycleError as error:
                (loop,) = error.args
                loops.append(loop)
                root_of.update(dict.fromkeys(loop, min(loop)))
                find_root(provider, parents.__getitem__, root_of)
        unknown = {*orphans, *(min(loop) for loop in loops)}
        right = {provider: root_of[provider] for provider in parents if root_of[provider] not in unknown}
        return cls(
            parents=parents,
            roots={row.id: row.root_provider_id for row in rows},
            right=right,
            rootless=[row.id for row in rows if row.id in right and row.root_provider_id is None],
            wrong=[row.id for row in rows if row.id in right and row.root_provider_id not in (None, right[row.id])],
            orphans=orphans,
            loops=loops,
        )

    def above(self, provider: int) -> list[int]:
        """Return the ids of the ancestors of a provider that has a right root, the parent first."""
        found: list[int] = []
        parent = self.parents[provider]
        while parent is not None:
            found.append(parent)
            parent = self.parents[parent]
        return found


_P = resource_providers.c
_ENDS = sa.select(_P.id, _P.parent_provider_id, _P.root_provider_id).order_by(_P.id)
