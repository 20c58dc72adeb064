"""Transactions that claim chosen places and write the claim records."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from placement import errors
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.writes.transaction import Transaction
from placement.extensions.v1.claims.claim_record import ClaimRecord
from placement.extensions.v1.claims.request import ClaimCall, ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult, Place, RequestOutcome
from placement.extensions.v1.pick.picker import Pick
from placement.index.snapshot import Snapshot
from placement.objects.claims import leases
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimOutcome, ClaimSet, PlacedClaim
from placement.objects.claims.holding import Mappings


class ChosenPlace(NamedTuple):
    """A request with the place chosen for it."""

    request: ClaimRequest
    #: Amounts by provider uuid and class.
    resources: Mapping[str, Mapping[str, int]]
    mappings: Mappings
    #: Ids, names and generations from the snapshot, by provider uuid.
    provider_ids: Mapping[str, int]
    provider_names: Mapping[str, str | None]
    provider_generations: Mapping[str, int]
    #: The uuids of the roots of the searched trees.
    roots: Sequence[str]

    @classmethod
    def from_pick(cls, request: ClaimRequest, pick: Pick, snapshot: Snapshot) -> ChosenPlace:
        """Return the place of a pick, with the amounts of all copies on a provider added up."""
        resources: dict[str, dict[str, int]] = {}
        ids: dict[str, int] = {}
        names: dict[str, str | None] = {}
        generations: dict[str, int] = {}
        for candidate in pick.candidates:
            for slot, amounts in candidate.amounts.items():
                provider = snapshot.provider(slot)
                ids[provider.uuid] = provider.id
                names[provider.uuid] = provider.name
                generations[provider.uuid] = snapshot.generations.item(slot)
                on_provider = resources.setdefault(provider.uuid, {})
                for name, amount in amounts.items():
                    on_provider[name] = on_provider.get(name, 0) + amount
        mappings = [
            {suffix: [snapshot.provider(slot).uuid for slot in slots] for suffix, slots in candidate.mappings.items()}
            for candidate in pick.candidates
        ]
        roots = [snapshot.provider(root).uuid for root in pick.roots]
        return cls(request, resources, mappings, ids, names, generations, roots)

    @property
    def claim(self) -> Claim:
        """The claim of the place."""
        request = self.request
        return Claim(
            request.consumer, self.resources, request.owner, generation=request.generation, author=request.author
        )

    @property
    def depends_on_one_provider(self) -> bool:
        """Whether the place is on one provider, which is also the root if the query has rules for roots."""
        query = self.request.query
        has_root_rules = query.root_traits.names or query.avoided
        return len(self.provider_ids) == 1 and (not has_root_rules or [*self.provider_ids] == [*self.roots])

    def is_unchanged(self, snapshot: Snapshot) -> bool:
        """Whether the providers have the same ids and generations in another snapshot."""
        slots = {uuid: snapshot.by_uuid[uuid] for uuid in self.provider_ids if uuid in snapshot.by_uuid}
        ids = {uuid: snapshot.provider(slot).id for uuid, slot in slots.items()}
        generations = {uuid: snapshot.generations.item(slot) for uuid, slot in slots.items()}
        return (ids, generations) == (self.provider_ids, self.provider_generations)

    def without_write_results(self) -> Place:
        """Return the place without the results of a write."""
        return Place(self.resources, self.provider_names, self.provider_generations, self.mappings)


class NothingWrittenError(Exception):
    """The transaction was rolled back because claims were refused."""

    def __init__(self, outcomes: Sequence[ClaimOutcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


#: The result of a placed claim, or the failure of a refused one.
Written = ClaimResult | errors.Failure


def write(
    database: Database | DryRun[object],
    call: ClaimCall,
    chosen: Sequence[ChosenPlace],
    relied_on: Mapping[str, Collection[int]],
    *,
    together: bool,
    unchanged: bool = False,
    skip_locked: bool,
    attempts: int,
) -> list[Written]:
    """Claim the places in one transaction, one after another, and return their outcomes.

    Args:
        relied_on: As for ``ClaimSet.place_each``.
        together: Whether to write nothing if one claim is refused.
        unchanged: Whether to refuse places whose providers have changed since they were chosen, and any attempt after
            the first.
        skip_locked: As for ``ClaimSet.place_each``.
        attempts: The maximum number of attempts.
    """
    # A provider that was deleted and created again has a new id, which only the next search uses.
    ids = {uuid: provider_id for place in chosen for uuid, provider_id in place.provider_ids.items()}
    as_chosen = {uuid: generation for place in chosen for uuid, generation in place.provider_generations.items()}
    generations = as_chosen if unchanged else None

    def work(db: Transaction) -> list[Written]:
        if unchanged and db.attempt > 1:
            raise NothingWrittenError([errors.AllocationsChanged()] * len(chosen))
        outcomes = ClaimSet(db, [place.claim for place in chosen]).place_each(
            ids, relied_on=relied_on, generations=generations, skip_locked=skip_locked
        )
        refused = sum(isinstance(outcome, errors.Failure) for outcome in outcomes)
        if refused == len(outcomes) or (together and refused):
            raise NothingWrittenError(outcomes)
        return _write_records(db, call, chosen, outcomes)

    try:
        return database.write(work, attempts=attempts, exhausted=errors.AllocationsChanged)
    except errors.AllocationsChanged as changed:  # in every attempt; earlier transactions of the call still count
        return [changed] * len(chosen)
    except NothingWrittenError as nothing:
        return [
            outcome if isinstance(outcome, errors.Failure) else errors.AllocationsChanged()
            for outcome in nothing.outcomes
        ]


def _write_records(
    db: Transaction, call: ClaimCall, chosen: Sequence[ChosenPlace], outcomes: Sequence[ClaimOutcome]
) -> list[Written]:
    """Write the records of the placed claims."""
    expires_at = leases.expiry_after(db, call.expires_in)
    written: list[Written] = []
    new: list[ClaimRecord] = []
    for place, outcome in zip(chosen, outcomes, strict=True):
        if isinstance(outcome, errors.Failure):
            written.append(outcome)
            continue
        record = _record(place, outcome, expires_at)
        if outcome.existed:
            record = record.replace(db, keep_expiry=outcome.moved and not call.sets_expiry)
        else:
            new.append(record)
        claimed = Place(
            resources=place.resources,
            provider_names=place.provider_names,
            provider_generations=outcome.provider_generations,
            mappings=place.mappings,
            consumer_generation=outcome.consumer_generation,
            expires_at=record.expires_at,
        )
        result = RequestOutcome.MOVED if outcome.moved else RequestOutcome.CLAIMED
        written.append(ClaimResult(place.request.consumer, result, claimed))
    ClaimRecord.insert_all(db, new)
    return written


def _record(place: ChosenPlace, outcome: PlacedClaim, expires_at: datetime.datetime | None) -> ClaimRecord:
    return ClaimRecord(
        consumer=place.request.consumer,
        content=place.request.content,
        generation=outcome.consumer_generation,
        mappings=place.mappings,
        expires_at=expires_at,
        author=place.request.author,
        row_id=outcome.row_id,
    )
