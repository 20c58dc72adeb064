"""What consumers were before a transaction changes them, for the history."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    claims,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.writes.notes import CONSUMER, PROVIDER, Pair, Path
from placement.db.writes.transaction import Reading, Transaction
from placement.objects.claims.claim import Claim
from placement.uuids import spellings

#: An amount of one class on one provider, by the provider's uuid and the name of the class.
_Key = tuple[str, str]
#: Consumers in one statement.
_MANY = 1000


class Advanced(NamedTuple):
    """An object whose generation a transaction moves, by the id of its row; None where there is none."""

    row: int | None
    before: int | None
    after: int | None

    @property
    def generations(self) -> tuple[int | None, int | None]:
        return self.before, self.after


@dataclass(slots=True)
class ConsumerState:
    """All that is known of a consumer that holds something."""

    uuid: str
    #: The id of its row.  None, as generation, project and user, if another implementation has left none.
    id: int | None
    generation: int | None
    project: str | None
    user: str | None
    consumer_type: str | None
    #: The end of its lease, by the database's clock, UTC, naive; None: it has none.
    lease: datetime.datetime | None
    #: Amounts, of providers and classes that exist.
    held: dict[_Key, int] = field(default_factory=dict)
    #: Ids of the providers of all its allocations.
    held_on: set[int] = field(default_factory=set)

    @classmethod
    def lock(cls, db: Transaction, uuid: str) -> Self | None:
        """Lock the row of a consumer, and return what it holds; None if it has no row or holds nothing.

        A row that is inserted after the lock is not read, since others may still change it.
        """
        if not db.execute(_LOCK, {"uuid": uuid}).all():
            return None
        return cls.read_all(db, [uuid]).get(uuid)

    def lock_lease(self, db: Transaction) -> None:
        """Lock the row of the consumer, and read the end of its lease: an extension does not move the generation."""
        db.execute(_LOCK, {"uuid": self.uuid}).all()
        self.lease = db.execute(_LEASE, {"uuid": self.uuid}).scalar()

    @classmethod
    def read_all(cls, db: Reading, uuids: Collection[str]) -> dict[str, Self]:
        """Return those of the consumers that hold something, by uuid."""
        found: dict[str, Self] = {}
        for batch in _batches(uuids):
            for row in db.execute(_HELD, {"uuids": batch}):
                if row.uuid not in uuids:
                    continue  # some collations find it in another case, too
                state = found.get(row.uuid)
                if state is None:
                    owner = row.project, row.user, row.consumer_type
                    state = found[row.uuid] = cls(row.uuid, row.id, row.generation, *owner, row.lease)
                state.held_on.add(row.provider_id)
                if row.provider is not None and row.resource_class is not None:
                    key = row.provider, row.resource_class
                    state.held[key] = state.held.get(key, 0) + row.used
        return found


def stored_uuids(db: Reading, texts: Collection[str]) -> dict[str, str]:
    """Return, for each text that spells the uuid of a consumer, that uuid in the form in which its row has it.

    Of two consumers whose uuids differ in their spelling only, the one that is spelled exactly so goes first.  Where
    there is no row it is the canonical form.
    """
    wanted = {text: spellings(text) for text in texts}
    rows = db.execute(_STORED, {"uuids": sorted({*itertools.chain(*wanted.values())})})
    stored = {row.uuid for row in rows}
    in_any_case = {uuid.lower(): uuid for uuid in stored}  # some collations find it in another case, too
    return {
        text: next((each for each in forms if each in stored), in_any_case.get(forms[-1], forms[-1]))
        for text, forms in wanted.items()
    }


#: A consumer that holds nothing.
_ABSENT = ConsumerState("", None, None, None, None, None, None)


def note_claim(
    db: Transaction,
    claim: Claim,
    before: ConsumerState | None,
    generation: int,
    row: int | None,
    advanced: Mapping[str, Advanced],
) -> None:
    """Note for the history what a claim changes of its consumer and of providers.

    Args:
        before: None for a consumer that held nothing.
        generation: The generation that the consumer has with the claim, if it holds anything then.
        row: The id of the consumer's row.
        advanced: The providers that the claim advances, by uuid.
    """
    held = (before or _ABSENT).held
    holds = {(uuid, name): amount for uuid, amounts in claim.resources.items() for name, amount in amounts.items()}
    if claim.only_on is not None:
        holds |= {key: amount for key, amount in held.items() if key[0] != claim.only_on}
    if not holds:
        if before is not None:
            note_end(db, before, advanced, claim=claim)
        return
    owner = claim.owner
    was = before or _ABSENT
    changes: dict[Path, Pair] = {("project",): (was.project, owner.project), ("user",): (was.user, owner.user)}
    if owner.consumer_type is not None:
        changes["type",] = (was.consumer_type, owner.consumer_type)
    step = Advanced(row, was.generation, generation)
    _note(db, claim.consumer, changes, held, holds, step, advanced, owner.project, claim)


def note_end(
    db: Transaction,
    before: ConsumerState,
    advanced: Mapping[str, Advanced] | None = None,
    *,
    claim: Claim | None = None,
    reason: str | None = None,
) -> None:
    """Note for the history that a consumer gives back all that it holds.

    Args:
        advanced: As of ``note_claim``.
        claim: The claim that ends it, if one does.
        reason: Why, if nobody asked for it.
    """
    changes: dict[Path, Pair] = {
        ("project",): (before.project, None),
        ("user",): (before.user, None),
        ("type",): (before.consumer_type, None),
        ("lease",): (written(before.lease), None),
        ("reason",): (None, reason),
    }
    step = Advanced(before.id, before.generation, None)
    _note(db, before.uuid, changes, before.held, {}, step, advanced or {}, before.project, claim)


def _note(
    db: Transaction,
    consumer: str,
    changes: dict[Path, Pair],
    held: Mapping[_Key, int],
    holds: Mapping[_Key, int],
    step: Advanced,
    advanced: Mapping[str, Advanced],
    project: str | None,
    claim: Claim | None,
) -> None:
    by = None if claim is None else claim.author
    of_providers: dict[str, dict[Path, Pair]] = {} if claim is None else {uuid: {} for uuid in claim.resources}
    for provider, name in dict.fromkeys([*held, *holds]):
        pair = held.get((provider, name)), holds.get((provider, name))
        changes["allocations", provider, name] = pair
        if pair[0] != pair[1] or provider in advanced:
            of_providers.setdefault(provider, {})["allocations", consumer, name] = pair
    db.note(CONSUMER, consumer, changes, generations=step.generations, row=step.row, project=project, by=by)
    before, after = {key[0] for key in held}, {key[0] for key in holds}
    for provider, of_provider in of_providers.items():
        of_provider["consumers", consumer] = provider in before, provider in after
        of = advanced.get(provider)
        if of is None:
            db.note(PROVIDER, provider, of_provider, by=by)
        else:
            db.note(PROVIDER, provider, of_provider, generations=of.generations, row=of.row, by=by)


def written(lease: datetime.datetime | None) -> str | None:
    """Return the text of the end of a lease, as events have it."""
    return None if lease is None else lease.isoformat(timespec="microseconds") + "Z"


def _batches(uuids: Collection[str]) -> list[list[str]]:
    ordered = sorted(uuids)
    return [ordered[start : start + _MANY] for start in range(0, len(ordered), _MANY)]


_A, _C = allocations.c, consumers.c
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_STORED = sa.select(_C.uuid).where(_C.uuid.in_(_UUIDS))
_LOCK = sa.select(_C.id).where(_C.uuid == sa.bindparam("uuid")).with_for_update()
_LEASE = sa.select(claims.c.expires_at).join(consumers, _C.id == claims.c.consumer_id)
_LEASE = _LEASE.where(_C.uuid == sa.bindparam("uuid"))
_HELD = (
    sa.select(
        _A.consumer_id.label("uuid"),
        _C.id,
        _C.generation,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("consumer_type"),
        claims.c.expires_at.label("lease"),
        resource_providers.c.uuid.label("provider"),
        resource_classes.c.name.label("resource_class"),
        _A.resource_provider_id.label("provider_id"),
        _A.used,
    )
    .select_from(allocations)
    .outerjoin(consumers, _C.uuid == _A.consumer_id)
    .outerjoin(projects, projects.c.id == _C.project_id)
    .outerjoin(users, users.c.id == _C.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _C.consumer_type_id)
    .outerjoin(claims, claims.c.consumer_id == _C.id)
    .outerjoin(resource_providers, resource_providers.c.id == _A.resource_provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .where(_A.consumer_id.in_(_UUIDS))
    .order_by(_A.id)
)
