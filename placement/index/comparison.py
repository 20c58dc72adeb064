"""Comparison of two snapshots of the same state, in case the first has missed changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.index.contents import tables_of
from placement.index.snapshot import Snapshot
from placement.index.tables import Integers, Tables
from placement.index.texts import Texts

#: Rows of provider id and values.
_Rows = npt.NDArray[Any]


def differences(snapshot: Snapshot, other: Snapshot) -> dict[str, list[str]]:
    """Return the fields that differ, by the uuid of the provider or the id of the resource class."""
    fields: dict[int, list[str]] = {}
    pairs = zip(_fields(tables_of(snapshot)), _fields(tables_of(other)), strict=True)
    for (name, rows), (_, other_rows) in pairs:
        for id_ in _owners_of_different_rows(rows, other_rows):
            # A provider that only one of the snapshots contains differs in all fields.
            if fields.setdefault(id_, []) != ["existence"]:
                fields[id_].append(name)
    by_uuid = {_uuid(id_, other, snapshot): names for id_, names in fields.items()}
    classes = sorted({id_ for id_, _ in snapshot.class_names.items() ^ other.class_names.items()})
    return by_uuid | {f"resource class {id_}": ["name"] for id_ in classes}


def _fields(tables: Tables) -> Iterator[tuple[str, _Rows]]:
    """Yield the names of all fields and their rows; texts are represented by their hashes."""
    ids = tables.ids
    yield "existence", ids[:, np.newaxis]
    yield "uuid", _columns(ids, tables.uuids.hashes().view(np.int64))
    yield "name", _columns(ids, tables.names.hashes().view(np.int64), tables.nameless)
    yield "generation", _columns(ids, tables.generations)
    yield "parent", _columns(ids, tables.parents)
    yield "root", _columns(ids, tables.roots)
    yield "inventories", tables.inventories
    yield "usages", tables.usages
    yield "traits", _members(tables.traits, tables.trait_names)
    yield "aggregates", _members(tables.aggregates, tables.aggregate_names)


def _columns(*columns: npt.NDArray[Any]) -> _Rows:
    return np.stack(columns, axis=1)


def _members(rows: Integers, names: Mapping[int, str | None]) -> _Rows:
    """Return rows of provider id and hash of a name."""
    ids = np.array(sorted(names), dtype=np.int64)
    hashes = Texts.of(names[id_] or "" for id_ in ids.tolist()).hashes().view(np.int64)
    return _columns(rows[:, 0], hashes[np.searchsorted(ids, rows[:, 1])])


def _owners_of_different_rows(rows: _Rows, other_rows: _Rows) -> list[int]:
    """Return the ids of the providers of rows that only one of the two arrays contains; no array contains a row twice.

    Sorting by columns takes a sixth of the time of ``np.unique`` by rows.
    """
    merged = np.concatenate((rows, other_rows))
    merged = merged[np.lexsort(merged.T[::-1])]
    is_repeated = np.zeros(len(merged) + 1, dtype=np.bool_)
    is_repeated[1:-1] = (merged[1:] == merged[:-1]).all(axis=1)
    owners = np.unique(merged[~(is_repeated[1:] | is_repeated[:-1]), 0])
    return [*map(int, owners)]


def _uuid(id_: int, *snapshots: Snapshot) -> str:
    """Return the uuid of a provider in the first snapshot that contains it."""
    return next(snapshot.provider(slot).uuid for snapshot in snapshots if (slot := snapshot.by_id.get(id_)) is not None)
