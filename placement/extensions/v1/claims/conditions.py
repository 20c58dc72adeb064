"""Conditions on the trees of a call: apart from consumers, together with consumers, and without refused places."""

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


class NoTreeError(Exception):
    """No tree meets the conditions."""


class Conditions:
    """The trees that a call may use, as of the last read.

    Attributes:
        named: Consumers whose places restrict the places of other consumers.  They may include consumers of this call,
            which may have places from an earlier call.
        relied_on: The ids of the providers on which each of these consumers holds resources.
    """

    def __init__(self, call: ClaimCall) -> None:
        self._call = call
        of_call = {request.consumer for request in call.requests}
        listed = of_call & call.apart_from
        #: The other consumers of the call, if ``apart_from`` lists some of them: both must keep apart.
        self._others = of_call - listed if listed else listed
        self.named = call.apart_from | call.together_with | self._others
        self.relied_on: dict[str, set[int]] = {}
        #: The same ids for places claimed by this call, since a dry run cannot read its own writes.
        self._taken: dict[str, set[int]] = {}
        #: Refused places, by the uuids of their roots.
        self._failed: dict[frozenset[str], ChosenPlace] = {}

    def read(self, db: Reading) -> None:
        """Read the holdings of the named consumers.  An index refreshed after this contains their providers."""
        self.relied_on = providers_of(db, self.named)
        if self._call.dry_run:
            self.relied_on |= {consumer: ids for consumer, ids in self._taken.items() if consumer in self.relied_on}

    def note_taken(self, place: ChosenPlace) -> None:
        """Record the place of a consumer of the call."""
        consumer = place.request.consumer
        if consumer in self.relied_on:
            self._taken[consumer] = self.relied_on[consumer] = {place.provider_ids[uuid] for uuid in place.resources}

    def note_failed(self, place: ChosenPlace) -> None:
        """Record a place that the database refused: avoid it until the index shows a change."""
        self._failed[frozenset(place.roots)] = place

    def picker(self, snapshot: Snapshot, settings: Settings, allowance: Allowance, waiting: Collection[str]) -> Picker:
        """Return a picker for a snapshot.

        Args:
            allowance: The remaining operations of the call.
            waiting: Consumers that have no place yet.

        Raises:
            NoTreeError: No tree meets the conditions.
        """
        apart, together = self._call.apart_from, self._call.together_with
        join = any(consumer in waiting for consumer in together)
        present = [self._roots(snapshot, self.relied_on[peer]) for peer in together if peer not in waiting]
        trees = [roots for roots in present if roots]
        if together and not join and not trees:
            raise NoTreeError
        avoided = (self._roots(snapshot, self.relied_on[consumer]) for consumer in apart)
        occupied = (self._roots(snapshot, self.relied_on[consumer]) for consumer in self._others)
        return Picker(
            snapshot,
            self._call.strategy,
            settings,
            avoid=set[int]().union(*avoided, self._failed_roots(snapshot)),
            occupied=set[int]().union(*occupied),
            within=set[int].intersection(*trees) if trees else None,
            join=join,
            allowance=allowance,
        )

    def _roots(self, snapshot: Snapshot, provider_ids: Iterable[int]) -> set[int]:
        """Return the roots of the providers' trees, except for sharing providers."""
        slots = [snapshot.by_id[provider_id] for provider_id in provider_ids if provider_id in snapshot.by_id]
        providers = [snapshot.provider(slot) for slot in slots]
        return {provider.root for provider in providers if SHARES not in provider.traits}

    def _failed_roots(self, snapshot: Snapshot) -> set[int]:
        """Return the roots of refused places whose providers have not changed since."""
        failed = (roots for roots, place in self._failed.items() if place.is_unchanged(snapshot))
        return {snapshot.by_uuid[uuid] for uuid in itertools.chain(*failed) if uuid in snapshot.by_uuid}
