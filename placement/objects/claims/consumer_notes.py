"""What the history is told about consumers: what a claim changes, and that they end."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from placement.db.writes.notes import CONSUMER, PROVIDER, Advance, Pair, Path
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.holding import Holding

#: An amount of one class on one provider, by the provider's uuid and the name of the class.
_Key = tuple[str, str]


def note_claim(
    db: Transaction,
    claim: Claim,
    before: Holding,
    generation: int,
    row: int | None,
    advanced: Mapping[str, Advance],
) -> None:
    """Note for the history what a claim changes about its consumer and about providers.

    Args:
        before: Empty for a consumer that held nothing.
        generation: The consumer's generation after the claim, if it still holds anything then.
        row: The id of the consumer's row.
        advanced: The providers that the claim advances, by uuid.
    """
    holds = {(uuid, name): amount for uuid, amounts in claim.resources.items() for name, amount in amounts.items()}
    if claim.only_on is not None:
        holds |= {key: amount for key, amount in before.amounts.items() if key[0] != claim.only_on}
    if not holds:
        if before.held_on:
            note_end(db, before, advanced, claim=claim)
        return
    owner = claim.owner
    changes: dict[Path, Pair] = {("project",): (before.project, owner.project), ("user",): (before.user, owner.user)}
    if owner.consumer_type is not None:
        changes["type",] = (before.type_name, owner.consumer_type)
    advance = Advance(row, before.generation, generation)
    _note(db, claim.consumer, changes, before.amounts, holds, advance, advanced, owner.project, claim)


def note_end(
    db: Transaction,
    before: Holding,
    advanced: Mapping[str, Advance] | None = None,
    *,
    claim: Claim | None = None,
    reason: str | None = None,
) -> None:
    """Note for the history that a consumer gives back everything that it holds.

    Args:
        advanced: As for ``note_claim``.
        claim: The claim that ends it, if one does.
        reason: Why it ends, if nobody asked for it.
    """
    changes: dict[Path, Pair] = {
        ("project",): (before.project, None),
        ("user",): (before.user, None),
        ("type",): (before.type_name, None),
        ("lease",): (written(before.expires_at), None),
        ("reason",): (None, reason),
    }
    advance = Advance(before.id, before.generation, None)
    _note(db, before.uuid, changes, before.amounts, {}, advance, advanced or {}, before.project, claim)


def _note(
    db: Transaction,
    consumer: str,
    changes: dict[Path, Pair],
    held: Mapping[_Key, int],
    holds: Mapping[_Key, int],
    advance: Advance,
    advanced: Mapping[str, Advance],
    project: str | None,
    claim: Claim | None,
) -> None:
    by = None if claim is None else claim.author
    of_providers: dict[str, dict[Path, Pair]] = {} if claim is None else {uuid: {} for uuid in claim.resources}
    for provider, name in dict.fromkeys([*held, *holds]):
        pair = held.get((provider, name)), holds.get((provider, name))
        changes["allocations", provider, name] = pair
        if pair[0] != pair[1]:
            of_providers.setdefault(provider, {})["allocations", consumer, name] = pair
    db.note(CONSUMER, consumer, changes, advance=advance, project=project, by=by)
    before, after = {key[0] for key in held}, {key[0] for key in holds}
    for provider, of_provider in of_providers.items():
        of_provider["consumers", consumer] = provider in before, provider in after
        db.note(PROVIDER, provider, of_provider, advance=advanced.get(provider), by=by)


def written(lease: datetime.datetime | None) -> str | None:
    """Return the end of a lease as events write it."""
    return None if lease is None else lease.isoformat(timespec="microseconds") + "Z"
