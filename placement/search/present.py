"""What was found, as a version shows it (contract 4.3)."""

from __future__ import annotations

import functools
import logging
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from placement import microversion as mv
from placement import signals
from placement.index.snapshot import Provider, Snapshot
from placement.microversion import Version
from placement.search.budget import Budget
from placement.search.find import Found

LOG = logging.getLogger(__name__)

#: About the bytes of a summary, without and for each of its classes, those that are sent included.
_SUMMARY, _CLASS = 750, 300
#: The summaries of so few providers are no matter.
_FEW = 500
_CLASSES_OF, _TRAITS_OF = operator.attrgetter("classes"), operator.attrgetter("traits")


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


@signals.timed("present")
def present(found: Found, form: Form, asked: Collection[str], budget: Budget | None = None) -> dict[str, Any]:
    """The body of the reply, with as many of the candidates as there is memory for.

    :param asked: the classes that some group asks for.
    """
    budget = Budget() if budget is None else budget
    slots = _summarised(found, form, budget.memory)
    if slots is None:
        budget.fall_short("memory")
        found = _affordable(found, form, budget.memory)
        LOG.warning(
            "Of the candidates that were found only %d are told: there is no memory for the summaries of more.",
            len(found.candidates),
        )
        slots = _summarised(found, form, None) or []
    return {
        "allocation_requests": list(_allocation_requests(found, form)),
        "provider_summaries": dict(_summaries(found.snapshot, slots, form, frozenset(asked))),
    }


def _affordable(found: Found, form: Form, memory: int) -> Found:
    """The candidates up to the first whose summaries are too much; the first is told in any case."""
    forest, providers = found.snapshot.forest, _providers(found.snapshot)
    whole = form.trees and bool(forest.members)
    left, seen = memory, set[int]()
    for count, candidate in enumerate(found.candidates):
        used = {providers[slot].root for slot in candidate.amounts} if whole else set(candidate.amounts)
        for slot in used - seen:
            left -= sum(_size(providers[each]) for each in (forest.tree(slot) if whole else (slot,)))
        seen |= used
        if left < 0 < count:
            return found._replace(candidates=found.candidates[:count], complete=False)
    return found


def _size(provider: Provider) -> int:
    """About the bytes of a summary, those that are sent included."""
    return _SUMMARY + _CLASS * len(provider.classes) + _traits_size(provider.traits)


def _traits_size(traits: frozenset[str]) -> int:
    """What is sent of them, with quotation marks and a comma; what is held of them is shared."""
    return sum(map(len, traits)) + 3 * len(traits)


def _allocation_requests(found: Found, form: Form) -> Iterator[dict[str, Any]]:
    providers = _providers(found.snapshot)
    # Candidates share what they take, and so can the objects that show it.
    taken: dict[int, dict[str, Any]] = {}
    for amounts, mappings in found.candidates:
        allocations: Any = {}
        for slot, given in amounts.items():
            shown = taken.get(id(given))
            if shown is None:
                shown = taken[id(given)] = {"resources": given}
            allocations[providers[slot].uuid] = shown
        if form.listed:
            allocations = [{"resource_provider": {"uuid": uuid}, **given} for uuid, given in allocations.items()]
        if not form.mappings:
            yield {"allocations": allocations}
            continue
        served = {}
        for suffix, slots in mappings.items():
            # Mostly there is one, and a comprehension costs as much as all the rest.
            served[suffix] = [providers[slots[0]].uuid] if len(slots) == 1 else [providers[slot].uuid for slot in slots]
        yield {"allocations": allocations, "mappings": served}


def _providers(snapshot: Snapshot) -> Sequence[Provider]:
    """By slot, for those who name only slots that have a provider."""
    return cast("Sequence[Provider]", snapshot.providers)


def _summarised(found: Found, form: Form, memory: int | None) -> list[int] | None:
    """The providers that have a summary, in order; None, if their summaries take more than so much memory."""
    used: set[int] = set()
    used.update(*(candidate.amounts for candidate in found.candidates))
    forest = found.snapshot.forest
    if form.trees and forest.members:
        for root in set(forest.roots(np.fromiter(used, np.intp)).tolist()):
            used.update(forest.tree(root))
            if memory is not None and len(used) * _SUMMARY > memory:
                return None
    slots = sorted(used)
    if memory is not None and len(slots) > _FEW and _sizes(_providers(found.snapshot), slots) > memory:
        return None
    return slots


def _sizes(providers: Sequence[Provider], slots: Sequence[int]) -> int:
    """About the bytes of all these summaries."""
    classes = Counter(map(len, map(_CLASSES_OF, map(providers.__getitem__, slots))))
    traits = Counter(map(_TRAITS_OF, map(providers.__getitem__, slots)))
    return (
        _SUMMARY * len(slots)
        + sum(_CLASS * number * count for number, count in classes.items())
        + sum(_traits_size(names) * count for names, count in traits.items())
    )


def _summaries(
    snapshot: Snapshot, slots: Sequence[int], form: Form, asked: frozenset[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The summaries of these providers, by uuid."""
    providers = _providers(snapshot)
    # Many providers have the same.
    traits: dict[frozenset[str], list[str]] = {}
    # What providers of the same classes have is looked up all at once.
    alike: dict[tuple[int, ...], list[int]] = {}
    for slot in slots:
        alike.setdefault(providers[slot].classes, []).append(slot)
    for classes, members in alike.items():
        for slot, resources in zip(members, _resources(snapshot, classes, members, form, asked), strict=True):
            provider = providers[slot]
            if not form.traits:
                yield provider.uuid, {"resources": resources}
                continue
            shown = traits.get(provider.traits)
            if shown is None:
                shown = traits[provider.traits] = sorted(provider.traits, key=snapshot.trait_ids.__getitem__)
            if not form.lineage:
                yield provider.uuid, {"resources": resources, "traits": shown}
                continue
            summary = {
                "resources": resources,
                "traits": shown,
                "parent_provider_uuid": providers[provider.parent].uuid if provider.parent >= 0 else None,
                "root_provider_uuid": providers[provider.root].uuid,
            }
            yield provider.uuid, summary


def _resources(
    snapshot: Snapshot, classes: Sequence[int], slots: Sequence[int], form: Form, asked: frozenset[str]
) -> Iterable[dict[str, Any]]:
    """What each of some providers has of these classes, which all of them have."""
    rows = np.array(slots, dtype=np.intp)
    shown: list[dict[str, Any]] = [{} for _ in slots]
    for class_id in classes:
        # The original removes a class while somebody comes to have some of it.
        name = snapshot.class_names.get(class_id)
        if name is not None and (form.every_class or name in asked):
            for resources, capacity, used in zip(
                shown, *snapshot.columns[class_id].capacity_and_usage(rows), strict=True
            ):
                resources[name] = {"capacity": capacity, "used": used}
    return shown
