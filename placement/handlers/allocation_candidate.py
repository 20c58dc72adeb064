"""/allocation_candidates: a search, and its presentation in each version (docs: api-candidate-results)"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placement import microversion as mv
from placement import signals
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.index.providers import Provider, Providers
from placement.index.slots import Slots
from placement.index.snapshot import Snapshot
from placement.microversion import Version
from placement.schemas import allocation_candidate as schema
from placement.search.find import SearchResult, Settings, find
from placement.search.query import existence, parse

LOG = logging.getLogger(__name__)

#: Approximate bytes of a summary, as an object and as text, without classes and traits; bytes per class.
_SUMMARY_SIZE, _CLASS_SIZE = 750, 300
#: Maximum number of summaries whose size is not estimated.
_MAX_UNESTIMATED = 500


@endpoint(
    since=mv.ALLOCATION_CANDIDATES,
    policy="placement:allocation_candidates:list",
    query=schema.LIST,
    replies=schema.LIST_REPLIES,
)
def list_candidates(req: Request) -> Reply:
    """List allocation candidates: providers that can supply the requested resources."""
    query = parse.search_query(req.parameters, req.version)
    existence.check_demands(query, req.conf)
    snapshot = req.index.current()
    existence.check(query, snapshot, req.database)
    result = find(query, snapshot, Settings.from_conf(req.conf))
    req.log_search(len(result.candidates), result.obstacle)
    presentation = present(result, req.version)
    response = ok(presentation.document, modified=NOW)
    if presentation.shortage is not None:
        response.headers[schema.INCOMPLETE] = presentation.shortage
    return response


class PresentedCandidates(NamedTuple):
    """The response to a search."""

    document: dict[str, Any]
    #: The exhausted part of the budget, "operations" or "memory"; None if the response is complete.
    shortage: str | None


@dataclass(frozen=True, slots=True)
class Content:
    """The parts of the response that depend on the version."""

    #: Whether allocations are a list of objects, rather than an object with a key for each provider.
    listed: bool
    #: Whether candidates contain ``mappings``: the providers that serve each group.
    mappings: bool
    #: Whether summaries contain every class of a provider, rather than only the requested classes.
    every_class: bool
    #: Whether summaries contain traits.
    traits: bool
    #: Whether summaries cover whole trees, with parents and roots, rather than only the providers of candidates.
    trees: bool

    @classmethod
    @functools.cache
    def for_version(cls, version: Version) -> Content:
        """Return the content of this version."""
        return cls(
            listed=version < mv.ALLOCATIONS_BY_PROVIDER,
            mappings=version >= mv.MAPPINGS,
            every_class=version >= mv.ALL_RESOURCES_IN_SUMMARIES,
            traits=version >= mv.CANDIDATES_REQUIRED,
            trees=version >= mv.NESTED_CANDIDATES,
        )


@signals.timed("present")
def present(result: SearchResult, version: Version) -> PresentedCandidates:
    """Return the response, with only the first candidates if the summaries of all exceed the remaining memory."""
    content, shortage = Content.for_version(version), result.shortage
    slots = _summarized_slots(result, content, result.remaining_memory)
    if slots is None:
        shortage = shortage or "memory"
        result = _limit_to_memory(result, content)
        LOG.warning(
            "The response was cut to the first %d candidates: the summaries of all candidates exceed "
            "[placement]max_search_memory.",
            len(result.candidates),
        )
        slots = _summarized_slots(result, content, None) or []
    rows = np.array(slots, dtype=np.intp)
    uuids = _Uuids(result.snapshot, rows)
    document = {
        "allocation_requests": list(_allocation_requests(result, content, uuids)),
        "provider_summaries": dict(_summaries(result, content, rows, uuids)),
    }
    return PresentedCandidates(document, shortage)


class _Uuids(dict[int, str]):
    """The uuids of providers, by slot.

    Only a group without resources may be served by a provider without a summary; its uuid is looked up on demand.
    """

    def __init__(self, snapshot: Snapshot, rows: Slots) -> None:
        super().__init__(zip(rows.tolist(), snapshot.providers.uuids(rows), strict=True))
        self._snapshot = snapshot

    def __missing__(self, slot: int) -> str:
        uuid = self[slot] = self._snapshot.provider(slot).uuid
        return uuid


def _limit_to_memory(result: SearchResult, content: Content) -> SearchResult:
    """Return the result cut to the first candidates whose summaries fit into the remaining memory, at least one."""
    forest, provider = result.snapshot.forest, result.snapshot.provider
    trees = content.trees and bool(len(forest.children))
    memory, summarized = result.remaining_memory, set[int]()
    for count, candidate in enumerate(result.candidates):
        used = {provider(slot).root for slot in candidate.amounts} if trees else set(candidate.amounts)
        for slot in used - summarized:
            memory -= sum(_size(provider(member)) for member in (forest.tree(slot) if trees else (slot,)))
        summarized |= used
        if memory < 0 < count:
            return result._replace(candidates=result.candidates[:count])
    return result


def _size(provider: Provider) -> int:
    """Return the approximate bytes of the summary of a provider."""
    return _SUMMARY_SIZE + _CLASS_SIZE * len(provider.classes) + _traits_size(provider.traits)


def _traits_size(traits: frozenset[str]) -> int:
    """Return the bytes of traits as text, with quotation marks and commas; the objects are shared and not counted."""
    return sum(map(len, traits)) + 3 * len(traits)


def _allocation_requests(result: SearchResult, content: Content, uuids: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    # Candidates share equal amounts, so they can also share the presented objects.
    shared: dict[int, dict[str, Any]] = {}
    for amounts, mappings in result.candidates:
        allocations: Any = {}
        for slot, supplied in amounts.items():
            resources = shared.get(id(supplied))
            if resources is None:
                resources = shared[id(supplied)] = {"resources": supplied}
            allocations[uuids[slot]] = resources
        if content.listed:
            allocations = [
                {"resource_provider": {"uuid": uuid}, **resources} for uuid, resources in allocations.items()
            ]
        if not content.mappings:
            yield {"allocations": allocations}
            continue
        servers: dict[str, list[str]] = {}
        for suffix, slots in mappings.items():
            # Most groups have one provider, and a comprehension would double the time of this function.
            servers[suffix] = [uuids[slots[0]]] if len(slots) == 1 else [uuids[slot] for slot in slots]
        yield {"allocations": allocations, "mappings": servers}


def _summarized_slots(result: SearchResult, content: Content, memory: int | None) -> list[int] | None:
    """Return the slots of the providers that have a summary, in order; None if the summaries exceed the memory.

    Args:
        memory: Bytes for the summaries; None for no limit.
    """
    used: set[int] = set()
    for candidate in result.candidates:
        used.update(candidate.amounts)
    forest = result.snapshot.forest
    if content.trees and len(forest.children):
        for root in set(forest.roots(np.fromiter(used, np.intp)).tolist()):
            used.update(forest.tree(root))
            if memory is not None and len(used) * _SUMMARY_SIZE > memory:
                return None
    slots = sorted(used)
    if memory is not None and len(slots) > _MAX_UNESTIMATED and _sizes(result.snapshot.providers, slots) > memory:
        return None
    return slots


def _sizes(providers: Providers, slots: Sequence[int]) -> int:
    """Return the approximate bytes of these summaries."""
    rows = np.array(slots, dtype=np.intp)
    classes = Counter(map(len, providers.classes(rows)))
    traits = Counter(providers.traits(rows))
    return (
        _SUMMARY_SIZE * len(slots)
        + sum(_CLASS_SIZE * number * count for number, count in classes.items())
        + sum(_traits_size(names) * count for names, count in traits.items())
    )


def _summaries(
    result: SearchResult, content: Content, rows: Slots, uuids: Mapping[int, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the summaries of the providers in these slots, with their uuid."""
    snapshot = result.snapshot
    # Positions by classes: providers with equal classes are looked up together.
    by_classes: dict[tuple[int, ...], list[int]] = {}
    for position, classes in enumerate(snapshot.providers.classes(rows)):
        by_classes.setdefault(classes, []).append(position)
    # Sorted names by set of traits: many providers have equal traits.
    names: dict[frozenset[str], list[str]] = {}
    for classes, positions in by_classes.items():
        members = rows[positions]
        documents: list[dict[str, Any]] = [
            {"resources": resources}
            for resources in _resources(snapshot, classes, members, content, result.query.resource_classes)
        ]
        if content.traits:
            for document, traits in zip(documents, snapshot.providers.traits(members), strict=True):
                if traits not in names:
                    names[traits] = sorted(traits, key=snapshot.trait_ids.__getitem__)
                document["traits"] = names[traits]
        if content.trees:
            parents, roots = snapshot.providers.parents(members).tolist(), snapshot.forest.roots(members).tolist()
            for document, parent, root in zip(documents, parents, roots, strict=True):
                document["parent_provider_uuid"] = uuids[parent] if parent >= 0 else None
                document["root_provider_uuid"] = uuids[root]
        yield from zip(map(uuids.__getitem__, members.tolist()), documents, strict=True)


def _resources(
    snapshot: Snapshot, classes: Sequence[int], slots: Slots, content: Content, requested: frozenset[str]
) -> Iterable[dict[str, Any]]:
    """Return capacity and usage by class for each of these providers, which have the same classes."""
    documents: list[dict[str, Any]] = [{} for _ in slots]
    for class_id in classes:
        # A class has no name if it was deleted while another client added an inventory of it.
        name = snapshot.class_names.get(class_id)
        if name is not None and (content.every_class or name in requested):
            amounts = snapshot.columns[class_id].capacity_and_usage(slots)
            for resources, capacity, used in zip(documents, *amounts, strict=True):
                resources[name] = {"capacity": capacity, "used": used}
    return documents
