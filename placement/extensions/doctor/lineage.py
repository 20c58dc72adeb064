"""Parents and roots of all providers, and inconsistencies left by other processes or lost commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from placement.db.writes.transaction import Reading
from placement.objects.ancestry import CycleError, add_root


@dataclass(frozen=True, slots=True)
class Lineage:
    """Parents and roots of all providers in one committed state; ids are in ascending order."""

    #: The parent of each provider, by id; None for a root.
    parents: Mapping[int, int | None]
    #: The stored root of each provider, by id.
    roots: Mapping[int, int | None]
    #: The root that follows from the parents, by id; without orphans, loops, and the providers below them.
    implied: Mapping[int, int]
    #: Providers without a stored root.
    rootless: Sequence[int]
    #: Providers whose stored root differs from the implied one.
    misrooted: Sequence[int]
    #: Providers whose parent does not exist.
    orphans: Sequence[int]
    #: The loops; in each, every provider is followed by its parent.
    loops: Sequence[Sequence[int]]

    @classmethod
    def read(cls, db: Reading) -> Lineage:
        """Read the lineage in one statement."""
        rows = db.execute(_PARENTS_AND_ROOTS).all()
        parents = {row.id: row.parent_provider_id for row in rows}
        orphans = [
            row.id for row in rows if row.parent_provider_id is not None and row.parent_provider_id not in parents
        ]
        root_of = {orphan: orphan for orphan in orphans}
        loops = []
        for provider in parents:
            try:
                add_root(provider, parents.__getitem__, root_of)
            except CycleError as error:
                (loop,) = error.args
                loops.append(loop)
                root_of.update(dict.fromkeys(loop, min(loop)))
                add_root(provider, parents.__getitem__, root_of)
        unknown = {*orphans, *(min(loop) for loop in loops)}
        implied = {provider: root_of[provider] for provider in parents if root_of[provider] not in unknown}
        return cls(
            parents=parents,
            roots={row.id: row.root_provider_id for row in rows},
            implied=implied,
            rootless=[row.id for row in rows if row.id in implied and row.root_provider_id is None],
            misrooted=[
                row.id for row in rows if row.id in implied and row.root_provider_id not in (None, implied[row.id])
            ],
            orphans=orphans,
            loops=loops,
        )

    def ancestors(self, provider: int) -> list[int]:
        """Return the ids of the ancestors of a provider, the parent first; the provider must be in ``implied``."""
        ancestors: list[int] = []
        parent = self.parents[provider]
        while parent is not None:
            ancestors.append(parent)
            parent = self.parents[parent]
        return ancestors


_P = resource_providers.c
_PARENTS_AND_ROOTS = sa.select(_P.id, _P.parent_provider_id, _P.root_provider_id).order_by(_P.id)
