"""What was found, as a version shows it (contract 4.3)."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement import microversion as mv
from placement.candidates.problem import Candidate
from placement.candidates.search import Found
from placement.index.snapshot import Provider, Snapshot
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
    providers = found.snapshot.providers
    summaries = _Summaries(found.snapshot, form, asked)
    return {
        "allocation_requests": [_allocation_request(candidate, providers, form) for candidate in found.candidates],
        "provider_summaries": dict(summaries.of(_used(found, form))),
    }


def _allocation_request(candidate: Candidate, providers: Sequence[Provider | None], form: Form) -> dict[str, Any]:
    # Every slot of a candidate has a provider.
    if form.listed:
        return {
            "allocations": [
                {"resource_provider": {"uuid": providers[slot].uuid}, "resources": given}  # type: ignore[union-attr]
                for slot, given in candidate.amounts.items()
            ]
        }
    shown: dict[str, Any] = {
        "allocations": {
            providers[slot].uuid: {"resources": given}  # type: ignore[union-attr]
            for slot, given in candidate.amounts.items()
        }
    }
    if form.mappings:
        shown["mappings"] = {
            suffix: [providers[slot].uuid for slot in slots]  # type: ignore[union-attr]
            for suffix, slots in candidate.mappings.items()
        }
    return shown


def _used(found: Found, form: Form) -> list[int]:
    """The providers that are summed up, in order."""
    used = {slot for candidate in found.candidates for slot in candidate.amounts}
    if form.trees:
        forest = found.snapshot.forest
        roots = set(forest.roots(np.fromiter(used, np.intp)).tolist())
        used = {slot for root in roots for slot in forest.tree(root)}
    return sorted(used)


class _Summaries:
    def __init__(self, snapshot: Snapshot, form: Form, asked: Collection[str]) -> None:
        self._snapshot = snapshot
        self._form = form
        self._asked = frozenset(asked)
        #: Many providers have the same.
        self._traits: dict[frozenset[str], list[str]] = {}

    def of(self, slots: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The summaries of these providers, by uuid."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for slot in slots:
            alike.setdefault(self._snapshot.provider(slot).classes, []).append(slot)
        for classes, members in alike.items():
            for slot, resources in zip(members, self._resources(classes, members), strict=True):
                provider = self._snapshot.provider(slot)
                yield provider.uuid, self._summary(provider, resources)

    def _resources(self, classes: Sequence[int], slots: Sequence[int]) -> Iterator[dict[str, Any]]:
        """What each of some providers has of these classes, which all of them have."""
        names = [self._snapshot.class_names[class_id] for class_id in classes]
        shown = [self._form.every_class or name in self._asked for name in names]
        rows = np.array(slots, dtype=np.intp)
        amounts = []
        for class_id, wanted in zip(classes, shown, strict=True):
            if wanted:
                capacity, used = self._snapshot.columns[class_id].shown(rows)
                amounts.append([{"capacity": c, "used": u} for c, u in zip(capacity, used, strict=True)])
        names = [name for name, wanted in zip(names, shown, strict=True) if wanted]
        if not names:
            return ({} for _ in slots)
        return (dict(zip(names, of, strict=True)) for of in zip(*amounts, strict=True))

    def _summary(self, provider: Provider, resources: dict[str, Any]) -> dict[str, Any]:
        summary: dict[str, Any] = {"resources": resources}
        if self._form.traits:
            traits = self._traits.get(provider.traits)
            if traits is None:
                traits = self._traits[provider.traits] = sorted(provider.traits)
            summary["traits"] = traits
        if self._form.lineage:
            parent = None if provider.parent < 0 else self._snapshot.provider(provider.parent).uuid
            summary["parent_provider_uuid"] = parent
            summary["root_provider_uuid"] = self._snapshot.provider(provider.root).uuid
        return summary
