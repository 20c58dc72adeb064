"""Nodes that fit a request, selected by the index and then by the rows of a few nodes.

The index contains the data of Placement: the class, whether its unit is free, and the traits.  The exact spelling of
the class, the owner and the states are columns of the node, so the rows of a random sample of free nodes are read.
Usually one of them fits.  Otherwise few of many nodes fit, and an indexed query finds them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Row

from placement.db import batches
from placement.db.schema.tables import allocations, resource_providers
from placement.db.writes.transaction import Reading
from placement.extensions.baremetal.objects.node import Node, inventory_class
from placement.extensions.baremetal.objects.record import Record
from placement.extensions.baremetal.objects.states import AVAILABLE, is_available
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.index.slots import EMPTY, SlotSet, intersection
from placement.index.snapshot import Snapshot
from placement.uuids import canonical

#: Free nodes in the first and in the second random sample.
SAMPLE_SIZE, LARGER_SAMPLE_SIZE = 16, 128
#: Number of free nodes above which an indexed query replaces the second sample.
MAX_SAMPLED = 1000
#: Maximum number of rows of the indexed query, and of its second run if no row of the first fits.
FIRST_ROWS, _ALL_ROWS = 200, 2**31 - 1


def _random() -> random.Random:
    """Return a generator seeded by the operating system: forked processes share the state of the global generator."""
    return random.Random(_SYSTEM.getrandbits(64))


_SYSTEM = random.SystemRandom()


def fits(requested: Record, node: Node | Row[Any]) -> bool:
    """Whether a node, free or not, is available and fits a request, except for its traits."""
    return (
        is_available(node.provision_state, node.power_state, node.maintenance, node.parent_node)
        and node.resource_class == requested.resource_class
        and (requested.owner is None or requested.owner in (node.owner, node.lessee))
    )


class CandidateNode(NamedTuple):
    """A node that fits, and its provider in the snapshot."""

    uuid: str
    provider_id: int
    generation: int


class Choice:
    """The free nodes of a snapshot, and the choice of one that fits."""

    def __init__(self, snapshot: Snapshot, requested: Record, refused: Collection[CandidateNode] = ()) -> None:
        """Find the free nodes.

        Args:
            requested: The request; a node with its name is preferred.
            refused: Earlier candidates, excluded unless their providers have changed.
        """
        self._snapshot = snapshot
        self._requested = requested
        free = _free_slots(snapshot, requested)
        excluded = [snapshot.by_uuid[old.uuid] for old in refused if old == self._candidate(old.uuid)]
        self._free = (free - SlotSet.sparse(np.unique(np.array(excluded, dtype=np.intp))) if excluded else free).slots()

    def candidate(self, db: Reading) -> CandidateNode | None:
        """Return a node that fits: the node with the name of the request, or a random one; None if no node fits."""
        uuid = self._choose(db) if len(self._free) else None
        return None if uuid is None else self._candidate(uuid)

    def sampled_candidate(self, db: Reading) -> CandidateNode | None:
        """Return a node that fits from the first random sample; None if no sampled node fits."""
        fitting = next(self._fitting_uuids(db)) if len(self._free) else []
        return self._candidate(_random().choice(fitting)) if fitting else None

    def is_stale(self, current: Callable[[], Snapshot]) -> bool:
        """Whether a free node of the snapshot has changed since.

        If no node has changed and no node fits, then no node fitted at the time of the snapshot: every claim and every
        change of a node advances the generation of its provider.

        Args:
            current: A function that returns the current snapshot; called only if a node was free.
        """
        if not len(self._free):
            return False
        newer = current()
        if newer is self._snapshot:
            return False
        ids = self._snapshot.providers.ids(self._free).tolist()
        slots = [newer.by_id.get(provider_id, -1) for provider_id in ids]
        if -1 in slots:
            return True
        return bool((newer.generations[np.array(slots)] != self._snapshot.generations[self._free]).any())

    def without_traits(self) -> Choice:
        """Return the choice for the same request without its traits."""
        return Choice(self._snapshot, replace(self._requested, traits=()))

    def _candidate(self, uuid: str) -> CandidateNode | None:
        slot = self._snapshot.by_uuid.get(uuid)
        if slot is None:
            return None
        return CandidateNode(uuid, self._snapshot.provider(slot).id, self._snapshot.generations.item(slot))

    # --- by rows ---

    def _choose(self, db: Reading) -> str | None:
        preferred = self._node_by_name(db)
        if preferred is not None:
            return preferred
        return next((_random().choice(fitting) for fitting in self._fitting_uuids(db) if fitting), None)

    def _node_by_name(self, db: Reading) -> str | None:
        """Return the uuid of the node with the name of the request, if it is free and fits."""
        if self._requested.name is None:
            return None
        rows = db.execute(_BY_NAME, {"name": self._requested.name}).all()
        return next(iter(self._matching_uuids(rows)), None)

    def _fitting_uuids(self, db: Reading) -> Iterator[list[str]]:
        """Yield the uuids of nodes that fit, from a random sample, then from more nodes, and finally from all."""
        generator = _random()
        positions = generator.sample(range(len(self._free)), min(len(self._free), SAMPLE_SIZE))
        yield self._fitting_uuids_in(db, self._free[positions].tolist())
        if len(self._free) <= MAX_SAMPLED:
            unsampled = np.delete(self._free, positions).tolist()
            generator.shuffle(unsampled)
            yield self._fitting_uuids_in(db, unsampled[:LARGER_SAMPLE_SIZE])
            yield self._fitting_uuids_in(db, unsampled[LARGER_SAMPLE_SIZE:])
            return
        parameters = {"resource_class": self._requested.resource_class, "owner": self._requested.owner}
        queries = [_BY_CLASS] if self._requested.owner is None else [_BY_OWNER, _BY_LESSEE]
        for max_rows in (FIRST_ROWS, _ALL_ROWS):
            results = [db.execute(query, {**parameters, "max_rows": max_rows}).all() for query in queries]
            yield self._matching_uuids(itertools.chain.from_iterable(results))
            queries = [query for query, rows in zip(queries, results, strict=True) if len(rows) == max_rows]

    def _fitting_uuids_in(self, db: Reading, slots: Iterable[int]) -> list[str]:
        uuids = self._snapshot.providers.uuids(np.fromiter(slots, np.intp))
        return self._matching_uuids(db.execute(_BY_UUIDS, {"uuids": uuids})) if uuids else []

    def _matching_uuids(self, rows: Iterable[Row[Any]]) -> list[str]:
        """Return the uuids of the nodes that fit and are free."""
        return [row.uuid for row in rows if fits(self._requested, row) and self._is_free(row.uuid)]

    def _is_free(self, uuid: str) -> bool:
        slot = self._snapshot.by_uuid.get(uuid)
        if slot is None or not len(self._free):
            return False
        position = int(np.searchsorted(self._free, slot))
        return position < len(self._free) and self._free.item(position) == slot


def resolve(db: Reading, idents: Collection[str], project: str | None = None) -> dict[str, str]:
    """Return the uuid of each node that exists, by the uuid or name in the request.

    Args:
        project: The project that must own or lease the nodes; None for all nodes.
    """
    resolved: dict[str, str] = {}
    uuids = {ident: uuid for ident in idents if (uuid := canonical(ident)) is not None}
    for column, key_by_ident in ((_N.uuid, uuids), (_N.name, {ident: ident for ident in idents if ident not in uuids})):
        query = sa.select(column.label("key"), _N.uuid).where(column.in_(sa.bindparam("keys", expanding=True)))
        if project is not None:
            query = query.where(sa.or_(_N.owner == project, _N.lessee == project))
        uuid_by_key = {row.key: row.uuid for row in batches.rows(db, query, "keys", sorted({*key_by_ident.values()}))}
        resolved |= {ident: uuid_by_key[key] for ident, key in key_by_ident.items() if key in uuid_by_key}
    return resolved


# --- by index -------------------------------------------------------------------------------------------------------


def _free_slots(snapshot: Snapshot, requested: Record) -> SlotSet:
    """Return the providers with the traits and a free unit of the class, among the candidate nodes, if any."""
    column = snapshot.column(inventory_class(requested.resource_class))
    if column is None:
        return EMPTY
    sets = [snapshot.with_trait(trait) for trait in set(requested.traits)]
    if requested.candidate_nodes:
        sets.append(_slots_of(snapshot, requested.candidate_nodes))
    return column.fitting_slots(1, intersection(sets) if sets else SlotSet.dense(snapshot.forest.alive))


def _slots_of(snapshot: Snapshot, uuids: Iterable[str]) -> SlotSet:
    """Return the slots of the providers that exist."""
    slots = {snapshot.by_uuid[uuid] for uuid in uuids if uuid in snapshot.by_uuid}
    return SlotSet.sparse(np.array(sorted(slots), dtype=np.intp))


# --- statements ------------------------------------------------------------------------------------------------------


_N, _A, _P = baremetal_nodes.c, allocations.c, resource_providers.c
_IS_HELD = sa.exists().where(_A.resource_provider_id == _P.id, _P.uuid == _N.uuid).correlate(baremetal_nodes)
_FREE = sa.select(
    *(_N.uuid, _N.resource_class, _N.owner, _N.lessee, _N.provision_state, _N.power_state),
    *(_N.maintenance, _N.parent_node),
).where(~_IS_HELD)
_BY_NAME = _FREE.where(_N.name == sa.bindparam("name"))
# No other condition: a database may otherwise choose a less selective index.
_BY_UUIDS = _FREE.where(_N.uuid.in_(sa.bindparam("uuids", expanding=True)))
_BY_CLASS = _FREE.where(_N.resource_class == sa.bindparam("resource_class"), _N.provision_state == AVAILABLE).limit(
    sa.bindparam("max_rows", type_=sa.Integer)
)
# Two queries: with OR between columns of two indexes, a database may use neither.
_BY_OWNER = _BY_CLASS.where(_N.owner == sa.bindparam("owner"))
_BY_LESSEE = _BY_CLASS.where(_N.lessee == sa.bindparam("owner"))
