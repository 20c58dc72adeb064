"""Where the consumers of a call may get places: apart from others, together with them, not where a claim failed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from placement.db.writes.transaction import Reading
from placement.extensions.v1.claims.request import ClaimCall
from placement.extensions.v1.claims.writing import ChosenPlace
from placement.extensions.v1.pick.allowance import Allowance
from placement.extensions.v1.pick.picker import Picker
from placement.index.snapshot import SHARES, Snapshot
from placement.objects.claims.holding import providers_of
from placement.search.find import Settings


class NowhereError(Exception):
    """No tree meets the conditions."""


class Conditions:
    """The trees that a call may use, as far as they are known.

    Attributes:
        named: The consumers whose places matter for others; those of this call may have theirs from an earlier call.
        relied_on: For each of these consumers, the ids of the providers on which it holds something.
    """

    def __init__(self, call: ClaimCall) -> None:
        self._call = call
        of_call = {request.consumer for request in call.requests}
        listed = of_call & call.apart_from
        #: If ``apart_from`` lists consumers of the call: the others of the call, from which these keep apart.
        self._others = of_call - listed if listed else listed
        self.named = call.apart_from | call.together_with | self._others
        self.relied_on: dict[str, set[int]] = {}
        #: The same for the places that the call has taken; a dry run could not read its own.
        self._taken: dict[str, set[int]] = {}
        #: Refused places, by the uuids of their trees' roots.
        self._failed: dict[frozenset[str], ChosenPlace] = {}

    def read(self, db: Reading) -> None:
        """Read what these consumers hold.  An index that is read afterwards knows the providers."""
        self.relied_on = providers_of(db, self.named)
        if self._call.dry_run:
            self.relied_on |= {consumer: ids for consumer, ids in self._taken.items() if consumer in self.relied_on}

    def note_taken(self, place: ChosenPlace) -> None:
        """Take into account that a consumer of the call has its place."""
        consumer = place.request.consumer
        if consumer in self.relied_on:
            self._taken[consumer] = self.relied_on[consumer] = {place.provider_ids[uuid] for uuid in place.resources}

    def note_failed(self, place: ChosenPlace) -> None:
        """Take into account that the database refused a place; while the index still shows the same, it is wrong."""
        self._failed[frozenset(place.roots)] = place

    def picker(self, snapshot: Snapshot, settings: Settings, allowance: Allowance, waiting: Collection[str]) -> Picker:
        """Return the picker that chooses places in a snapshot.

        Args:
            allowance: The operations that the call has left.
            waiting: The consumers that have no place yet.

        Raises:
            NowhereError: No tree meets the conditions.
        """
        apart, together = self._call.apart_from, self._call.together_with
        join = any(consumer in waiting for consumer in together)
        present = [self._roots(snapshot, self.relied_on[each]) for each in together if each not in waiting]
        trees = [roots for roots in present if roots]
        if together and not join and not trees:
            raise NowhereError
        held = (self._roots(snapshot, self.relied_on[consumer]) for consumer in apart)
        others = (self._roots(snapshot, self.relied_on[consumer]) for consumer in self._others)
        return Picker(
            snapshot,
            self._call.strategy,
            settings,
            avoid=set[int]().union(*held, self._failed_roots(snapshot)),
            occupied=set[int]().union(*others),
            within=set[int].intersection(*trees) if trees else None,
            join=join,
            allowance=allowance,
        )

    def _roots(self, snapshot: Snapshot, provider_ids: Iterable[int]) -> set[int]:
        """Return the roots of the providers' trees, leaving out providers that share with other trees."""
        slots = [snapshot.by_id[id_] for id_ in provider_ids if id_ in snapshot.by_id]
        providers = [snapshot.provider(slot) for slot in slots]
        return {provider.root for provider in providers if SHARES not in provider.traits}

    def _failed_roots(self, snapshot: Snapshot) -> set[int]:
        """Return the roots of refused places whose providers are unchanged in the snapshot."""
        failed = (roots for roots, place in self._failed.items() if place.is_unchanged(snapshot))
        return {snapshot.by_uuid[uuid] for uuid in itertools.chain(*failed) if uuid in snapshot.by_uuid}
