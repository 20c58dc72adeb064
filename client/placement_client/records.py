"""Records of the documents that the service returns.

Fields that a later release adds are ignored, or are available in ``document``.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement_client.query import Query

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """A request for one consumer, of ``POST /v1/claims``.

    Attributes:
        consumer: The uuid of the consumer, which is the idempotency key: a repeated request changes nothing.
        query: The requirements of the consumer.
        count: Copies, in different trees.
        keep: True for a new claim; False for a move, which replaces the present allocations.
        consumer_generation: The present generation of the consumer, for a move.
        dry_run: Whether to only search for a place.
    """

    consumer: str | uuid.UUID
    query: str | Query
    project_id: str
    user_id: str
    consumer_type: str
    count: int = 1
    keep: bool = True
    consumer_generation: int | None = None
    dry_run: bool = False

    def document(self) -> dict[str, Any]:
        """Return the JSON document of the request."""
        document = {**vars(self), "consumer": str(self.consumer)}
        if self.keep:
            del document["consumer_generation"]
        return document


@dataclass(frozen=True)
class Allocation:
    """The allocation of a consumer on one provider.

    Attributes:
        name: The name of the provider; None if it has been deleted.
        resources: Amounts by resource class.
        generation: The generation of the provider; None in a list of consumers.
        node: The name of the bare metal node, if the provider is one.
    """

    name: str | None
    resources: Mapping[str, int]
    generation: int | None = None
    node: str | None = None


@dataclass(frozen=True)
class Claim:
    """A claim.

    Attributes:
        consumer: The uuid of the consumer.
        allocations: Allocations by the uuid of the provider.
        mappings: For each copy, the providers that serve each group of the query, by suffix; None if unknown, because
            another client has changed the allocations.
        consumer_generation: The generation of the consumer; None for a dry run.
        expires_at: The time at which the claim expires, by the clock of the database; None without an expiry.
        outcome: ``"claimed"``, ``"held"`` (by an earlier, equal request), ``"moved"``, or ``"found"`` (by a dry run);
            None unless the record is the result of a claim.
    """

    consumer: str
    allocations: Mapping[str, Allocation]
    mappings: Sequence[Mapping[str, Sequence[str]]] | None
    consumer_generation: int | None
    expires_at: datetime.datetime | None
    outcome: str | None = None

    @classmethod
    def of(cls, document: Document) -> Claim:
        """Return the claim in a document."""
        return cls(
            document["consumer"],
            _allocations(document),
            document["mappings"],
            document.get("consumer_generation"),
            _time(document["expires_at"]),
            document.get("outcome"),
        )


@dataclass(frozen=True)
class Candidate:
    """An allocation candidate.

    Attributes:
        allocations: Amounts by resource class, by the uuid of the provider.
        mappings: The providers that serve each group of the query, by suffix.
    """

    allocations: Mapping[str, Mapping[str, int]]
    mappings: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, document: Document) -> Candidate:
        """Return the candidate in a document."""
        allocations = {provider: allocation["resources"] for provider, allocation in document["allocations"].items()}
        return cls(allocations, document["mappings"])


@dataclass(frozen=True)
class Consumer:
    """A consumer in a list.

    Attributes:
        since: The time from which it has held resources; None if that was not recorded.
        expires_at: The time at which its claim expires; None without an expiry.
        allocations: Allocations by the uuid of the provider.
    """

    uuid: str
    type: str
    project: str
    user: str
    generation: int
    since: datetime.datetime | None
    expires_at: datetime.datetime | None
    allocations: Mapping[str, Allocation]

    @classmethod
    def of(cls, document: Document) -> Consumer:
        """Return the consumer in a document."""
        fields = {name: document[name] for name in ("uuid", "type", "project", "user", "generation")}
        since, expires_at = _time(document["since"]), _time(document["expires_at"])
        return cls(**fields, since=since, expires_at=expires_at, allocations=_allocations(document))


@dataclass(frozen=True)
class Relaxation:
    """A change with which a query has candidates, verified by a search.

    Attributes:
        text: The change in words.
        query: The changed query, as a query string.
        found: The number of candidates of the changed query.
    """

    text: str
    query: str
    found: int


@dataclass(frozen=True)
class Explanation:
    """The reason why a query has candidates or none, from ``GET /v1/explain``.

    Attributes:
        summary: The obstacle, and the change that would help, in words.
        rule: The rule that left no provider; None if the query has candidates, or is not the obstacle.
        group: The suffix of the group of the rule.
        relaxations: Changes with which the query has candidates, the smallest first.
        found: The number of candidates; None with a refused claim.
        document: The whole document.
    """

    summary: str
    rule: str | None
    group: str | None
    relaxations: Sequence[Relaxation]
    found: int | None
    document: Document = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> Explanation:
        """Return the explanation in a document."""
        obstacle = document["obstacle"] or {}
        relaxations = [
            Relaxation(relaxation["text"], relaxation["query"], relaxation["found"])
            for relaxation in document["relaxations"]
        ]
        found = document.get("found")
        return cls(document["summary"], obstacle.get("rule"), obstacle.get("group"), relaxations, found, document)


@dataclass(frozen=True)
class Capacity:
    """The number of times that a query fits, from ``GET /v1/capacity``.

    Attributes:
        count: The number, for one point in time.
        at_most: An upper bound; None if unknown.
        exact: Whether the count is exact.
        why: The reason why the count is exact, or may be too small.
        limiting: The limiting resource or rule, in words; None if the count stopped at ``until``.
        document: The whole document, with the counts of trees and aggregates.
    """

    count: int
    at_most: int | None
    exact: bool
    why: str
    limiting: str | None
    document: Document = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> Capacity:
        """Return the capacity in a document."""
        fields = {name: document[name] for name in ("count", "at_most", "exact", "why")}
        return cls(**fields, limiting=(document["limiting"] or {}).get("text"), document=document)


@dataclass(frozen=True)
class Event:
    """A committed change, from ``GET /v1/events``.

    Attributes:
        position: The position of the event, after which ``Client.follow`` can continue.
        at: The time of the change, by the clock of the database.
        kind: ``"provider"``, ``"consumer"``, ``"node"``, ``"resource_class"`` or ``"trait"``.
        uuid: The uuid of the provider, consumer or node.
        name: The name, if the event creates, renames or deletes the object.
        generation: The generations before and after the change; None where the object did not exist.
        changes: Pairs of the old and the new value.
        project: The project that owns the consumer.
        request: The request that made the change, and its caller; unknown entries are missing.
        names: The names of the providers and nodes in the event, by uuid.
    """

    position: str
    at: datetime.datetime
    kind: str
    uuid: str | None
    name: str | None
    generation: Sequence[int | None]
    changes: Mapping[str, Any]
    project: str | None
    request: Mapping[str, Any] | None
    names: Mapping[str, str]

    @classmethod
    def of(cls, document: Document) -> Event:
        """Return the event in a document."""
        names = ("position", "kind", "uuid", "name", "generation", "changes", "project", "request", "names")
        at = _time(document["at"])
        assert at is not None
        return cls(at=at, **{name: document[name] for name in names})


@dataclass(frozen=True)
class Released:
    """The result of a release.

    Attributes:
        released: Consumers that held resources.
        missing: Consumers that held nothing.
    """

    released: Sequence[str]
    missing: Sequence[str]


def _allocations(document: Document) -> dict[str, Allocation]:
    return {
        provider: Allocation(
            allocation["name"], allocation["resources"], allocation.get("generation"), allocation.get("node")
        )
        for provider, allocation in document["allocations"].items()
    }


def _time(text: str | None) -> datetime.datetime | None:
    # Before Python 3.11, ``fromisoformat`` does not accept the Z.
    return None if text is None else datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
