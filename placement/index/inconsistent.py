"""Inconsistent rows, which the schema allows; the index corrects them or leaves them out, and the log names them.

Lost commits, other implementations and manual changes cause them: a membership in an aggregate that does not exist, a
provider without a generation, a provider that is its own ancestor.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Mapping

import numpy as np

from placement.index.slots import Slots
from placement.index.tables import NULL, Integers, Tables
from placement.objects.ancestry import CycleError, add_root

LOG = logging.getLogger(__name__)

#: Maximum number of rows named in one message.
_MAX_NAMED = 5
#: Maximum number of rows per finding remembered as logged.
_MAX_REMEMBERED = 1000

_logged: dict[str, set[Hashable]] = {}


def _log_once(finding: str, rows: Collection[Hashable]) -> None:
    """Log the rows that were not yet logged for this finding."""
    logged = _logged.setdefault(finding, set())
    new = [row for row in rows if row not in logged] if rows and len(logged) < _MAX_REMEMBERED else []
    if not new:
        return
    logged.update(new[:_MAX_REMEMBERED])
    more = f" and {len(new) - _MAX_NAMED} more" if len(new) > _MAX_NAMED else ""
    LOG.error("In the database, %s: %s%s.", finding, ", ".join(map(str, new[:_MAX_NAMED])), more)


def parents_and_roots(tables: Tables) -> tuple[Slots, Slots]:
    """Return the slot of the parent (-1 for a root) and of the root of each provider; slot n is the n-th provider.

    The root follows from the parents; a different root in a row is ignored and logged.  A provider with a
    missing parent, and the provider with the lowest id in a cycle, are logged and treated as roots.
    """
    ids = tables.ids
    parents = np.full(len(ids), -1, dtype=np.intp)
    children = np.flatnonzero(tables.parents != NULL)
    if len(children):
        positions = np.minimum(np.searchsorted(ids, tables.parents[children]), len(ids) - 1)
        exists = ids[positions] == tables.parents[children]
        parents[children[exists]] = positions[exists]
        _log_providers(
            "these providers have a parent that does not exist; they are treated as roots", tables, children[~exists]
        )
        roots, cycles = _roots(parents)
        parents[cycles] = -1
        _log_providers("these providers are their own ancestors; they are treated as roots", tables, cycles)
    else:
        roots = np.arange(len(ids))
    # In old databases, roots have no root id.
    is_wrong = (tables.roots != ids[roots]) & ((tables.roots != NULL) | (tables.parents != NULL))
    _log_providers(
        "the root of these providers differs from the root of their parents, which is used",
        tables,
        np.flatnonzero(is_wrong),
    )
    without_generation = np.flatnonzero(tables.generations == NULL)
    _log_providers("these providers have no generation; 0 is used", tables, without_generation)
    return parents, roots


def _roots(parents: Slots) -> tuple[Slots, list[int]]:
    """Return the root of each slot, and the lowest slot of each cycle, which is treated as a root."""
    roots = np.where(parents < 0, np.arange(len(parents)), parents)
    # Each step doubles the distance.  After the last one, a path has reached its root, or is in a cycle.
    for _ in range(len(parents).bit_length()):
        roots = roots[roots]
    circular = np.flatnonzero(parents[roots] >= 0).tolist()
    if not circular:
        return roots, []
    parent_of = {slot: None if parents[slot] < 0 else int(parents[slot]) for slot in circular}
    root_of: dict[int, int] = {}
    lowest = []
    for slot in circular:
        try:
            add_root(slot, parent_of.__getitem__, root_of)
        except CycleError as error:
            (cycle,) = error.args
            lowest.append(min(cycle))
            parent_of[min(cycle)] = None
            add_root(slot, parent_of.__getitem__, root_of)
    roots[circular] = [root_of[slot] for slot in circular]
    return roots, lowest


def _log_providers(finding: str, tables: Tables, slots: Slots | list[int]) -> None:
    _log_once(finding, tables.uuids.select(np.asarray(slots, dtype=np.intp)))


def with_names(rows: Integers, names: Mapping[int, str | None], kind: str) -> Integers:
    """Return the rows of provider id and named id; those whose second id has no name are left out and logged."""
    nameless = [id_ for id_ in np.unique(rows[:, 1]).tolist() if names.get(id_) is None]
    if not nameless:
        return rows
    has_name = ~np.isin(rows[:, 1], nameless)
    owners = [f"{kind} {id_} of provider {owner}" for owner, id_ in rows[~has_name].tolist()]
    _log_once(f"these {kind}s do not exist or have no name; they are ignored", owners)
    return rows[has_name]
