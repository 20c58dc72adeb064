"""The rows of all providers, as arrays; an index is built from them.

A Python object for each row would take most of the time and memory of a load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.index.records import Rows
from placement.index.texts import Texts

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: NULL in an array of integers.
NULL = -(2**63)


@dataclass(frozen=True, slots=True)
class Tables:
    """All rows of all providers, which are in ascending order of their ids; the order of other rows is arbitrary."""

    #: One element for each provider, up to ``roots``.
    ids: Integers
    uuids: Texts
    #: An empty text for NULL; ``nameless`` tells it from an empty name.
    names: Texts
    nameless: npt.NDArray[np.bool_]
    #: NULL is inconsistent, and treated as 0.
    generations: Integers
    #: The id of the parent; NULL for a root.
    parents: Integers
    #: The id of the root; NULL for a root in an old database.
    roots: Integers
    #: Rows of provider id, class id, total, reserved, min_unit, max_unit, step_size, allocation_ratio.
    inventories: Floats
    #: Rows of provider id, class id, and the sum of the allocations of this class on this provider.
    usages: Floats
    #: Rows of provider id and trait id.
    traits: Integers
    #: Names of the traits in ``traits``, by id; a missing or None name is inconsistent.
    trait_names: Mapping[int, str | None]
    #: Rows of provider id and aggregate id.
    aggregates: Integers
    #: Uuids of the aggregates in ``aggregates``, by id.
    aggregate_names: Mapping[int, str | None]

    @classmethod
    def of(cls, rows: Rows) -> Tables:
        """Return rows as arrays."""
        providers = sorted(rows.providers)
        ids, uuids, names, *numbers = zip(*providers, strict=True) if providers else ((),) * 6
        trait_ids = dict(rows.trait_ids)
        aggregate_ids = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in rows.aggregates))}
        generations, parents, roots = (
            np.array([NULL if number is None else number for number in column], dtype=np.int64) for column in numbers
        )
        return cls(
            ids=np.array(ids, dtype=np.int64),
            uuids=Texts.of(uuids),
            names=Texts.of(name or "" for name in names),
            nameless=np.array([name is None for name in names], dtype=np.bool_),
            generations=generations,
            parents=parents,
            roots=roots,
            inventories=np.asarray(rows.inventories, dtype=np.float64).reshape(-1, 8),
            usages=np.asarray(rows.usages, dtype=np.float64).reshape(-1, 3),
            traits=_pairs((owner, trait_ids[name]) for owner, name in rows.traits),
            trait_names={id_: name for name, id_ in trait_ids.items()},
            aggregates=_pairs((owner, aggregate_ids[name]) for owner, name in rows.aggregates),
            aggregate_names={id_: name for name, id_ in aggregate_ids.items()},
        )

    def rows(self) -> Rows:
        """Return the rows as ``Rows``; traits and aggregates without a name are left out."""
        every = np.arange(len(self.ids))
        names = zip(self.nameless.tolist(), self.names.select(every), strict=True)
        columns = (
            self.ids.tolist(),
            self.uuids.select(every),
            [None if is_nameless else name for is_nameless, name in names],
            *map(_or_none, (self.generations, self.parents, self.roots)),
        )
        return Rows(
            providers=[*zip(*columns, strict=True)],
            inventories=self.inventories,
            usages=self.usages,
            traits=_with_names(self.traits, self.trait_names),
            aggregates=_with_names(self.aggregates, self.aggregate_names),
            trait_ids={name: id_ for id_, name in self.trait_names.items() if name is not None},
        )


def _pairs(pairs: Iterable[tuple[int, int]]) -> Integers:
    return np.array([*pairs], dtype=np.int64).reshape(-1, 2)


def _with_names(pairs: Integers, names: Mapping[int, str | None]) -> list[tuple[int, str]]:
    return [(owner, name) for owner, id_ in pairs.tolist() if (name := names.get(id_)) is not None]


def _or_none(numbers: Integers) -> list[int | None]:
    return [None if number == NULL else number for number in numbers.tolist()]
