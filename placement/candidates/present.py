"""What was found, as a version shows it (contract 4.3)."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement import microversion as mv
from placement.candidates.search import Found
from placement.index.snapshot import Snapshot
from placement.microversion import Version


@dataclass(frozen=True, slots=True)
class Form:
    """What is shown."""

    #: Allocations are a list of objects, instead of an object with a key for each provider.
    listed: bool
    #: Which provider serves which group.
    mappings: bool
    #: In summaries: every class of a provider, or those that are asked for; its traits; its parent and root.
    every_class: bool
    traits: bool
    lineage: bool
    #: Whether whole trees are summed up, or just the providers that candidates use.
    trees: bool

    @classmethod
    @functools.cache
    def of(cls, version: Version) -> Form:
        """The form of a version."""
        return cls(
            listed=version < mv.ALLOCATIONS_BY_PROVIDER,
            mappings=version >= mv.MAPPINGS,
            every_class=version >= mv.ALL_RESOURCES_IN_SUMMARIES,
            traits=version >= mv.CANDIDATES_REQUIRED,
            lineage=version >= mv.NESTED_CANDIDATES,
            trees=version >= mv.NESTED_CANDIDATES,
        )


def present(found: Found, form: Form, asked: Collection[str]) -> dict[str, Any]:
    """The body of the reply.

    :param asked: the classes that some group asks for.
    """
    return {
        "allocation_requests": list(_allocation_requests(found, form)),
        "provider_summaries": dict(_summaries(found.snapshot, _summarised(found, form), form, frozenset(asked))),
    }


def _allocation_requests(found: Found, form: Form) -> Iterator[dict[str, Any]]:
    uuid = _Uuids(found.snapshot)
    # Candidates share what they take, and so can the objects that show it.
    shown: dict[int, dict[str, Any]] = {}
    for amounts, mappings in found.candidates:
        allocations: Any = {}
        for slot, given in amounts.items():
            if id(given) not in shown:
                shown[id(given)] = {"resources": given}
            allocations[uuid[slot]] = shown[id(given)]
        if form.listed:
            allocations = [{"resource_provider": {"uuid": of}, **given} for of, given in allocations.items()]
        if form.mappings:
            served = {suffix: [uuid[slot] for slot in slots] for suffix, slots in mappings.items()}
            yield {"allocations": allocations, "mappings": served}
        else:
            yield {"allocations": allocations}


class _Uuids(dict[int, str]):
    """By slot; those that were asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self._snapshot = snapshot

    def __missing__(self, slot: int) -> str:
        uuid = self[slot] = self._snapshot.provider(slot).uuid
        return uuid


def _summarised(found: Found, form: Form) -> list[int]:
    """The providers that have a summary, in order."""
    used = {slot for candidate in found.candidates for slot in candidate.amounts}
    if form.trees:
        forest = found.snapshot.forest
        roots = set(forest.roots(np.fromiter(used, np.intp)).tolist())
        used = {slot for root in roots for slot in forest.tree(root)}
    return sorted(used)


def _summaries(
    snapshot: Snapshot, slots: Sequence[int], form: Form, asked: frozenset[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The summaries of these providers, by uuid."""
    uuid = _Uuids(snapshot)
    #: Many providers have the same.
    traits: dict[frozenset[str], list[str]] = {}
    # What providers of the same classes have is looked up all at once.
    alike: dict[tuple[int, ...], list[int]] = {}
    for slot in slots:
        alike.setdefault(snapshot.provider(slot).classes, []).append(slot)
    for classes, members in alike.items():
        for slot, resources in zip(members, _resources(snapshot, classes, members, form, asked), strict=True):
            provider = snapshot.provider(slot)
            summary: dict[str, Any] = {"resources": resources}
            if form.traits:
                if provider.traits not in traits:
                    traits[provider.traits] = sorted(provider.traits)
                summary["traits"] = traits[provider.traits]
            if form.lineage:
                summary["parent_provider_uuid"] = uuid[provider.parent] if provider.parent >= 0 else None
                summary["root_provider_uuid"] = uuid[provider.root]
            yield provider.uuid, summary


def _resources(
    snapshot: Snapshot, classes: Sequence[int], slots: Sequence[int], form: Form, asked: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """What each of some providers has of these classes, which all of them have."""
    rows = np.array(slots, dtype=np.intp)
    names, amounts = [], []
    for class_id in classes:
        name = snapshot.class_names[class_id]
        if form.every_class or name in asked:
            names.append(name)
            capacity, used = snapshot.columns[class_id].shown(rows)
            amounts.append([{"capacity": of, "used": part} for of, part in zip(capacity, used, strict=True)])
    if not names:
        return ({} for _ in slots)
    return (dict(zip(names, of, strict=True)) for of in zip(*amounts, strict=True))
