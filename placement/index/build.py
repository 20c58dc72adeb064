"""Construction of a snapshot from rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from placement.index import inconsistent
from placement.index.column import Column, capacity_and_ratio
from placement.index.forest import Forest
from placement.index.records import Numbers, Rows
from placement.index.slots import SlotSet
from placement.index.snapshot import Provider, Snapshot

#: Spare slots of a snapshot, so that its arrays need not grow with every new provider: a constant, and one for every
#: _PROVIDERS_PER_SPARE_SLOT providers.
SPARE_SLOTS = 64
_PROVIDERS_PER_SPARE_SLOT = 8

Matrix = npt.NDArray[np.float64]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Hashable)


class _Interner:
    """A function that returns one object for equal values: 100,000 hosts have only a few different sets of traits."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, value: Value) -> Value:
        return self._known.setdefault(value, value)  # type: ignore[no-any-return]


def slots_for(count: int) -> int:
    """Return the number of slots for ``count`` providers, spare slots included."""
    return count + count // _PROVIDERS_PER_SPARE_SLOT + SPARE_SLOTS


def group(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Group the second elements of the pairs by the first."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def build(rows: Rows, class_names: Mapping[int, str]) -> Snapshot:
    """Return a snapshot of all providers."""
    provider_rows = sorted(rows.providers)
    snapshot = Snapshot()
    snapshot.by_id = {row[0]: slot for slot, row in enumerate(provider_rows)}
    snapshot.by_uuid = {row[1]: slot for slot, row in enumerate(provider_rows)}
    snapshot.class_names, snapshot.class_ids = name_classes(class_names)
    snapshot.free_slots = ()
    size = slots_for(len(provider_rows))
    snapshot.generations = np.zeros(size, dtype=np.int64)
    snapshot.generations[: len(provider_rows)] = [row[3] or 0 for row in provider_rows]
    inventories = matrix(rows.inventories, 8)
    snapshot.providers = _providers(provider_rows, inventories, rows, snapshot.by_id)
    snapshot.forest = Forest.of_roots([provider.root for provider in snapshot.providers if provider], size)
    ids = np.array([row[0] for row in provider_rows], dtype=np.int64)
    snapshot.columns = _columns(inventories, matrix(rows.usages, 3), ids, size)
    snapshot.trait_ids = dict(rows.trait_ids)
    snapshot.traits = _sets(rows.traits, snapshot.by_id, size)
    snapshot.aggregates = _sets(rows.aggregates, snapshot.by_id, size)
    return snapshot


def name_classes(class_names: Mapping[int, str]) -> tuple[dict[int, str], dict[str, int]]:
    """Return the names of the resource classes by id, and their ids by name."""
    return dict(class_names), {name: class_id for class_id, name in class_names.items()}


def matrix(rows: Numbers, columns: int) -> Matrix:
    """Return the rows as an array of floats, which represent every id and amount exactly."""
    return np.asarray(rows, dtype=np.float64).reshape(-1, columns)


def _providers(
    provider_rows: inconsistent.ProviderRows,
    inventories: Matrix,
    rows: Rows,
    by_id: Mapping[int, int],
) -> list[Provider | None]:
    traits, aggregates = group(rows.traits), group(rows.aggregates)
    classes = group(inventories[:, :2].astype(np.int64).tolist())
    intern = _Interner()
    parent_of, root_of = inconsistent.parents_and_roots(provider_rows)
    return [
        Provider(
            id=provider_id,
            uuid=uuid,
            name=name,
            parent=-1 if (parent_id := parent_of[provider_id]) is None else by_id[parent_id],
            root=by_id[root_of[provider_id]],
            classes=intern(tuple(sorted(classes.get(provider_id, ())))),
            traits=intern(frozenset(traits.get(provider_id, ()))),
            aggregates=intern(frozenset(aggregates.get(provider_id, ()))),
        )
        for provider_id, uuid, name, *_ in provider_rows
    ]


def _columns(
    inventories: Matrix, usages: Matrix, ids: np.ndarray[Any, np.dtype[np.int64]], size: int
) -> dict[int, Column]:
    """Return the columns by class id.

    Args:
        ids: The id of each slot, ascending.
    """
    columns = {}
    for class_id in np.unique(inventories[:, 1]):
        of_class = inventories[inventories[:, 1] == class_id]
        of_class = of_class[np.isin(of_class[:, 0], ids)]
        of_class = of_class[np.argsort(of_class[:, 0], kind="stable")]
        provider_id, _, total, reserved, min_unit, max_unit, step_size, ratio = of_class.T
        used = np.zeros(len(of_class))
        usage = usages[(usages[:, 1] == class_id) & np.isin(usages[:, 0], provider_id)]
        used[np.searchsorted(provider_id, usage[:, 0])] = usage[:, 2]
        capacity, ratio = capacity_and_ratio(total, reserved, ratio)
        slots = np.searchsorted(ids, provider_id)
        columns[int(class_id)] = Column(
            slots, (capacity, used, min_unit, max_unit, step_size, total, reserved, ratio), size
        )
    return columns


def _sets(rows: Iterable[tuple[int, str]], by_id: Mapping[int, int], size: int) -> dict[str, SlotSet]:
    members = group((name, by_id[provider_id]) for provider_id, name in rows if provider_id in by_id)
    return {name: SlotSet.from_slots(np.sort(np.array(slots, dtype=np.intp)), size) for name, slots in members.items()}
