"""Changes of consumers for the history: by a claim, or at their end."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from placement.db.writes.notes import CONSUMER, PROVIDER, Advance, Pair, Path
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.holding import Holding

#: A provider uuid and a class name.
_Key = tuple[str, str]


def note_claim(
    db: Transaction,
    claim: Claim,
    before: Holding,
    generation: int,
    row: int | None,
    advanced: Mapping[str, Advance],
) -> None:
    """Record in the history the changes of a claim to its consumer and providers.

    Args:
        before: The previous holding; empty for a consumer without allocations.
        generation: The consumer's generation after the claim, unless the claim ends it.
        row: The id of the consumer's row.
        advanced: Generations of the providers that the claim advances, by uuid.
    """
    amounts_after = {
        (uuid, name): amount for uuid, amounts in claim.resources.items() for name, amount in amounts.items()
    }
    if claim.only_on is not None:
        amounts_after |= {key: amount for key, amount in before.amounts.items() if key[0] != claim.only_on}
    if not amounts_after:
        if before.held_on:
            note_end(db, before, advanced, claim=claim)
        return
    owner = claim.owner
    changes: dict[Path, Pair] = {("project",): (before.project, owner.project), ("user",): (before.user, owner.user)}
    if owner.consumer_type is not None:
        changes["type",] = (before.type_name, owner.consumer_type)
    advance = Advance(row, before.generation, generation)
    _note(db, claim.consumer, changes, before.amounts, amounts_after, advance, advanced, owner.project, claim)


def note_end(
    db: Transaction,
    before: Holding,
    advanced: Mapping[str, Advance] | None = None,
    *,
    claim: Claim | None = None,
    reason: str | None = None,
) -> None:
    """Record in the history that a consumer ends and releases all its allocations.

    Args:
        advanced: As for ``note_claim``.
        claim: The claim that ends it, if any.
        reason: The reason, if no request ended the consumer.
    """
    changes: dict[Path, Pair] = {
        ("project",): (before.project, None),
        ("user",): (before.user, None),
        ("type",): (before.type_name, None),
        ("lease",): (format_expiry(before.expires_at), None),
        ("reason",): (None, reason),
    }
    advance = Advance(before.id, before.generation, None)
    _note(db, before.uuid, changes, before.amounts, {}, advance, advanced or {}, before.project, claim)


def _note(
    db: Transaction,
    consumer: str,
    changes: dict[Path, Pair],
    amounts_before: Mapping[_Key, int],
    amounts_after: Mapping[_Key, int],
    advance: Advance,
    advanced: Mapping[str, Advance],
    project: str | None,
    claim: Claim | None,
) -> None:
    by = None if claim is None else claim.author
    provider_changes: dict[str, dict[Path, Pair]] = {} if claim is None else {uuid: {} for uuid in claim.resources}
    for provider, name in dict.fromkeys([*amounts_before, *amounts_after]):
        pair = amounts_before.get((provider, name)), amounts_after.get((provider, name))
        changes["allocations", provider, name] = pair
        if pair[0] != pair[1]:
            provider_changes.setdefault(provider, {})["allocations", consumer, name] = pair
    db.note(CONSUMER, consumer, changes, advance=advance, project=project, by=by)
    providers_before, providers_after = {key[0] for key in amounts_before}, {key[0] for key in amounts_after}
    for provider, pairs in provider_changes.items():
        pairs["consumers", consumer] = provider in providers_before, provider in providers_after
        db.note(PROVIDER, provider, pairs, advance=advanced.get(provider), by=by)


def format_expiry(expiry: datetime.datetime | None) -> str | None:
    """Return the expiry of a lease as text, for events."""
    return None if expiry is None else expiry.isoformat(timespec="microseconds") + "Z"
