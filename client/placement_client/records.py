"""What the service returns, as records.  Fields that a later release adds are ignored, or are in ``document``."""

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
    """The request for one consumer in a call of ``POST /v1/claims``.

    Attributes:
        consumer: Its uuid.  It is the key: the same request again changes nothing.
        query: What it needs.
        count: The number of copies that it needs, each in another tree.
        keep: True for a consumer that holds nothing; False to move one, which replaces what it holds.
        consumer_generation: Its present generation, for a move.
        dry_run: Whether a place is only searched for.
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
        """Return it as the service takes it."""
        document = {**vars(self), "consumer": str(self.consumer)}
        if self.keep:
            del document["consumer_generation"]
        return document


@dataclass(frozen=True)
class Allocation:
    """What a consumer holds of one provider.

    Attributes:
        name: The name of the provider; None if it was deleted meanwhile.
        resources: The amounts, by resource class.
        generation: The generation of the provider; None in a list of consumers.
        node: The name of the bare metal node, if the provider is one.
    """

    name: str | None
    resources: Mapping[str, int]
    generation: int | None = None
    node: str | None = None


@dataclass(frozen=True)
class Claim:
    """What a consumer holds.

    Attributes:
        consumer: Its uuid.
        allocations: What it holds, by the uuid of the provider.
        mappings: For each copy, the providers that serve each group of the query, by its suffix; None if they are not
            known, because another client has changed what the consumer holds.
        consumer_generation: The generation of the consumer; None for a dry run.
        expires_at: When it ends, by the clock of the database; None for never.
        outcome: Of a claim: ``"claimed"``; ``"held"``: by an equal request before; ``"moved"``; ``"found"``: by a dry
            run.  Else None.
    """

    consumer: str
    allocations: Mapping[str, Allocation]
    mappings: Sequence[Mapping[str, Sequence[str]]] | None
    consumer_generation: int | None
    expires_at: datetime.datetime | None
    outcome: str | None = None

    @classmethod
    def of(cls, document: Document) -> Claim:
        """Return the claim that a document has."""
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
    """A place where a request fits.

    Attributes:
        allocations: The amounts by resource class, by the uuid of the provider.
        mappings: The providers that serve each group of the query, by its suffix.
    """

    allocations: Mapping[str, Mapping[str, int]]
    mappings: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, document: Document) -> Candidate:
        """Return the candidate that a document has."""
        allocations = {provider: held["resources"] for provider, held in document["allocations"].items()}
        return cls(allocations, document["mappings"])


@dataclass(frozen=True)
class Consumer:
    """A consumer in a list.

    Attributes:
        since: Since when it holds something; None if that was not recorded.
        expires_at: When its claim ends; None for never.
        allocations: What it holds, by the uuid of the provider.
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
        """Return the consumer that a document has."""
        stated = {name: document[name] for name in ("uuid", "type", "project", "user", "generation")}
        since, expires_at = _time(document["since"]), _time(document["expires_at"])
        return cls(**stated, since=since, expires_at=expires_at, allocations=_allocations(document))


@dataclass(frozen=True)
class Relaxation:
    """A change of a request that gives candidates, as a search has verified.

    Attributes:
        text: The change in words.
        query: The changed request, as a query string.
        found: The number of candidates that it has.
    """

    text: str
    query: str
    found: int


@dataclass(frozen=True)
class Explanation:
    """Why a request has the candidates that it has, or none: the reply of ``GET /v1/explain``.

    Attributes:
        summary: What is in the way, and what would be enough, in two sentences.
        rule: The rule that left nothing; None if there are candidates, or it is not the query that stands in the way.
        group: The suffix of its group.
        relaxations: Changes that give candidates, the smallest first.
        found: The number of candidates; None with a claim that is refused.
        document: All of it.
    """

    summary: str
    rule: str | None
    group: str | None
    relaxations: Sequence[Relaxation]
    found: int | None
    document: Document = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> Explanation:
        """Return the explanation that a document has."""
        obstacle = document["obstacle"] or {}
        relaxations = [Relaxation(each["text"], each["query"], each["found"]) for each in document["relaxations"]]
        found = document.get("found")
        return cls(document["summary"], obstacle.get("rule"), obstacle.get("group"), relaxations, found, document)


@dataclass(frozen=True)
class Capacity:
    """How often a request fits: the reply of ``GET /v1/capacity``.

    Attributes:
        count: The number, which is valid for one moment.
        at_most: An upper bound; None if none is known.
        exact: Whether both are equal.
        why: Why the count is exact, or why it may be too small.
        limiting: What ends the count, in words; None if it stopped at ``until``.
        document: All of it, with the count of each tree and aggregate.
    """

    count: int
    at_most: int | None
    exact: bool
    why: str
    limiting: str | None
    document: Document = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> Capacity:
        """Return the capacity that a document has."""
        stated = {name: document[name] for name in ("count", "at_most", "exact", "why")}
        return cls(**stated, limiting=(document["limiting"] or {}).get("text"), document=document)


@dataclass(frozen=True)
class Event:
    """A change that was committed: a part of the reply of ``GET /v1/events``.

    Attributes:
        position: Its place in the order: ``Client.follow`` goes on after it.
        at: When it was changed, by the clock of the database.
        kind: ``"provider"``, ``"consumer"``, ``"node"``, ``"resource_class"`` or ``"trait"``.
        uuid: Of the provider, consumer or node.
        name: The name, where the event creates, renames or deletes what has it.
        generation: The generation before and after the change; None: there was, or is, none.
        changes: Pairs of the old and the new value.
        project: The project that owns the consumer.
        request: Who asked for it, as far as it is known.
        names: The names of the providers and nodes that the event mentions, by uuid.
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
        """Return the event that a document has."""
        stated = ("position", "kind", "uuid", "name", "generation", "changes", "project", "request", "names")
        at = _time(document["at"])
        assert at is not None
        return cls(at=at, **{name: document[name] for name in stated})


@dataclass(frozen=True)
class Released:
    """The consumers that hold nothing any more: those that held something, and those that did not."""

    released: Sequence[str]
    missing: Sequence[str]


def _allocations(document: Document) -> dict[str, Allocation]:
    return {
        provider: Allocation(held["name"], held["resources"], held.get("generation"), held.get("node"))
        for provider, held in document["allocations"].items()
    }


def _time(text: str | None) -> datetime.datetime | None:
    # Before Python 3.11, ``fromisoformat`` does not know the Z.
    return None if text is None else datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
