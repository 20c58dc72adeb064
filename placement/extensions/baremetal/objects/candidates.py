"""Which nodes fit a request: the index narrows all providers down, and the rows of a few of those decide.

The index knows what Placement knows: the class, whether its unit is free, the traits.  The exact spelling of the class,
the owner and the states are columns of the node.  So some of the free nodes are taken at random, and their rows are
read; mostly one of them fits.  If none does, few of many fit, and an indexed query finds those.
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

#: How many free nodes are looked at first, at random, and then, if there are few.
SAMPLE_SIZE, LARGER_SAMPLE_SIZE = 16, 128
#: With more free nodes than this, an indexed query finds those that fit.
MAX_SAMPLED = 1000
#: How many rows the indexed query returns at first, and then.
FIRST_ROWS, _ALL_ROWS = 200, 2**31 - 1


def _random() -> random.Random:
    """Return a generator with a seed of the operating system: processes that a server has forked share their state."""
    return random.Random(_SYSTEM.getrandbits(64))


_SYSTEM = random.SystemRandom()


def fits(wanted: Record, node: Node | Row[Any]) -> bool:
    """Whether a node, free or not, can be given away and is what a request wants, but for its traits."""
    return (
        is_available(node.provision_state, node.power_state, node.maintenance, node.parent_node)
        and node.resource_class == wanted.resource_class
        and (wanted.owner is None or wanted.owner in (node.owner, node.lessee))
    )


class CandidateNode(NamedTuple):
    """A node that fits, and its provider as the snapshot has it."""

    uuid: str
    provider_id: int
    generation: int


class Choice:
    """The nodes that are free in a snapshot, and the choice of one of them that fits."""

    def __init__(self, snapshot: Snapshot, wanted: Record, refused: Collection[CandidateNode] = ()) -> None:
        """Find what is free.

        Args:
            wanted: The request.  The node that has its name is chosen before all others.
            refused: Candidates that are not chosen again, unless their providers have changed.
        """
        self._snapshot = snapshot
        self._wanted = wanted
        free = _free(snapshot, wanted)
        excluded = [snapshot.by_uuid[old.uuid] for old in refused if old == self._candidate(old.uuid)]
        self._free = (free - SlotSet.sparse(np.unique(np.array(excluded, dtype=np.intp))) if excluded else free).slots()

    def candidate(self, db: Reading) -> CandidateNode | None:
        """Return a node that fits, at random unless one has the name of the request; None if no node fits."""
        uuid = self._chosen(db) if len(self._free) else None
        return None if uuid is None else self._candidate(uuid)

    def sampled_candidate(self, db: Reading) -> CandidateNode | None:
        """Return a node that fits, of a few that are free in the snapshot; None if there is none among these."""
        fitting = next(self._fitting(db)) if len(self._free) else []
        return self._candidate(_random().choice(fitting)) if fitting else None

    def is_stale(self, current: Callable[[], Snapshot]) -> bool:
        """Whether a node that was free has changed since the snapshot was made.

        If none has, and none of them fitted meanwhile, then none fitted when the snapshot was made: a claim moves the
        generation of a provider, and so does each change of a node.

        Args:
            current: Returns the snapshot of the current state; not called if nothing was free.
        """
        if not len(self._free):
            return False
        now = current()
        if now is self._snapshot:
            return False
        slots = [now.by_id.get(self._snapshot.provider(slot).id, -1) for slot in self._free]
        return -1 in slots or bool((now.generations[slots] != self._snapshot.generations[self._free]).any())

    def without_traits(self) -> Choice:
        """Return the choice between nodes that need not have the traits."""
        return Choice(self._snapshot, replace(self._wanted, traits=()))

    def _candidate(self, uuid: str) -> CandidateNode | None:
        slot = self._snapshot.by_uuid.get(uuid)
        if slot is None:
            return None
        return CandidateNode(uuid, self._snapshot.provider(slot).id, self._snapshot.generations.item(slot))

    # --- by the rows ---

    def _chosen(self, db: Reading) -> str | None:
        preferred = self._preferred(db)
        if preferred is not None:
            return preferred
        return next((_random().choice(fitting) for fitting in self._fitting(db) if fitting), None)

    def _preferred(self, db: Reading) -> str | None:
        """Return the uuid of the node that has the name of the request, if it is free and fits."""
        if self._wanted.name is None:
            return None
        found = db.execute(_NAMED, {"name": self._wanted.name}).all()
        return next(iter(self._judged(found)), None)

    def _fitting(self, db: Reading) -> Iterator[list[str]]:
        """Yield the uuids of nodes that fit: of a random sample, then of more and more nodes, and at last of all."""
        order = _random()
        positions = order.sample(range(len(self._free)), min(len(self._free), SAMPLE_SIZE))
        yield self._of_slots(db, self._free[positions].tolist())
        if len(self._free) <= MAX_SAMPLED:
            others = np.delete(self._free, positions).tolist()
            order.shuffle(others)
            yield self._of_slots(db, others[:LARGER_SAMPLE_SIZE])
            yield self._of_slots(db, others[LARGER_SAMPLE_SIZE:])
            return
        facts = {"resource_class": self._wanted.resource_class, "owner": self._wanted.owner}
        queries = [_BY_CLASS] if self._wanted.owner is None else [_BY_OWNER, _BY_LESSEE]
        for most in (FIRST_ROWS, _ALL_ROWS):
            found = [db.execute(query, {**facts, "most": most}).all() for query in queries]
            yield self._judged(itertools.chain.from_iterable(found))
            queries = [query for query, rows in zip(queries, found, strict=True) if len(rows) == most]

    def _of_slots(self, db: Reading, slots: Iterable[int]) -> list[str]:
        uuids = [self._snapshot.provider(slot).uuid for slot in slots]
        return self._judged(db.execute(_BY_UUIDS, {"uuids": uuids})) if uuids else []

    def _judged(self, rows: Iterable[Row[Any]]) -> list[str]:
        """Return the uuids of those of the nodes that fit and are free."""
        return [row.uuid for row in rows if fits(self._wanted, row) and self._is_free(row.uuid)]

    def _is_free(self, uuid: str) -> bool:
        slot = self._snapshot.by_uuid.get(uuid)
        if slot is None or not len(self._free):
            return False
        position = int(np.searchsorted(self._free, slot))
        return position < len(self._free) and self._free.item(position) == slot


def resolve(db: Reading, idents: Collection[str], project: str | None = None) -> dict[str, str]:
    """Return the uuids of those of the nodes that exist, by the uuid or name that a client wrote.

    Args:
        project: Only its nodes count, owned or leased; None for all.
    """
    found: dict[str, str] = {}
    uuids = {ident: uuid for ident in idents if (uuid := canonical(ident)) is not None}
    for column, by_ident in ((_N.uuid, uuids), (_N.name, {ident: ident for ident in idents if ident not in uuids})):
        query = sa.select(column.label("key"), _N.uuid).where(column.in_(sa.bindparam("keys", expanding=True)))
        if project is not None:
            query = query.where(sa.or_(_N.owner == project, _N.lessee == project))
        known = {row.key: row.uuid for row in batches.rows(db, query, "keys", sorted({*by_ident.values()}))}
        found |= {ident: known[key] for ident, key in by_ident.items() if key in known}
    return found


# --- by the index ----------------------------------------------------------------------------------------------------


def _free(snapshot: Snapshot, wanted: Record) -> SlotSet:
    """Return the providers that have a free unit of the class and the traits, of those that may be chosen."""
    column = snapshot.column(inventory_class(wanted.resource_class))
    if column is None:
        return EMPTY
    sets = [snapshot.with_trait(trait) for trait in set(wanted.traits)]
    if wanted.candidate_nodes:
        sets.append(_slots_of(snapshot, wanted.candidate_nodes))
    return column.fitting(1, intersection(sets) if sets else SlotSet.dense(snapshot.forest.alive))


def _slots_of(snapshot: Snapshot, uuids: Iterable[str]) -> SlotSet:
    """Return the slots of those of the providers that exist."""
    slots = {snapshot.by_uuid[uuid] for uuid in uuids if uuid in snapshot.by_uuid}
    return SlotSet.sparse(np.array(sorted(slots), dtype=np.intp))


# --- statements ------------------------------------------------------------------------------------------------------


_N, _A, _P = baremetal_nodes.c, allocations.c, resource_providers.c
_HELD = sa.exists().where(_A.resource_provider_id == _P.id, _P.uuid == _N.uuid).correlate(baremetal_nodes)
_FREE = sa.select(
    *(_N.uuid, _N.resource_class, _N.owner, _N.lessee, _N.provision_state, _N.power_state),
    *(_N.maintenance, _N.parent_node),
).where(~_HELD)
_NAMED = _FREE.where(_N.name == sa.bindparam("name"))
# No other condition: a database may prefer an index of these columns, which has more rows.
_BY_UUIDS = _FREE.where(_N.uuid.in_(sa.bindparam("uuids", expanding=True)))
_BY_CLASS = _FREE.where(_N.resource_class == sa.bindparam("resource_class"), _N.provision_state == AVAILABLE).limit(
    sa.bindparam("most", type_=sa.Integer)
)
# Two queries: with OR between the columns of two indexes, a database may use neither.
_BY_OWNER = _BY_CLASS.where(_N.owner == sa.bindparam("owner"))
_BY_LESSEE = _BY_CLASS.where(_N.lessee == sa.bindparam("owner"))
