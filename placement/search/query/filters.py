"""What the filters of GET /resource_providers and GET /allocation_candidates ask for (contract 2.1.1 and 4.2).

Every function takes text that the query schema let pass and raises a BadRequest with the sentence of the contract.  No
name is looked up here: a class or a trait that nobody knows is found out where the names are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oslo_utils import uuidutils

from placement import errors
from placement import microversion as mv
from placement.microversion import Version

#: Sets of which one member each must be met, all sets together: (A or B) and (C).
AnyOf = tuple[frozenset[str], ...]

#: More than any inventory can give, so as good as any greater amount, and small enough to calculate with.
TOO_MUCH = 2**31

_INTEGER = re.compile(r"\s*([+-]?)([0-9]+)\s*")
_ANY_OF_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"


@dataclass(frozen=True, slots=True)
class Traits:
    """One of each required set, and none of the forbidden."""

    required: AnyOf = ()
    forbidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Membership:
    """In one aggregate of each set, and in none of the forbidden; uuids are as the client spells them."""

    member_of: AnyOf = ()
    forbidden: frozenset[str] = frozenset()


# --- amounts ---------------------------------------------------------------------------------------------------------


def resources(value: str) -> dict[str, int]:
    """The amount asked for of each class; of a class named twice the last counts."""
    if not value.strip():
        raise errors.MalformedResources(got="empty string")
    amounts = {}
    for piece in value.split(","):
        if piece.count(":") != 1:
            raise errors.MalformedResources(got=piece)
        resource_class, _, amount = piece.partition(":")
        amounts[resource_class] = _amount(resource_class, amount)
    return amounts


def _amount(resource_class: str, text: str) -> int:
    number = _bounded(text)
    if number is None:
        raise errors.AmountNotInteger(resource_class=resource_class, got=text)
    if number < 1:
        raise errors.AmountTooSmall(resource_class=resource_class, got=text.strip())
    return number


def limit(value: str) -> int:
    """How many candidates are wanted."""
    return _bounded(value) or TOO_MUCH


def _bounded(text: str) -> int | None:
    """The number, TOO_MUCH in place of a greater one, None if it is none.  The text may be longer than int() reads."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    # Not in the pattern: between zeros and digits it would try every place.
    digits = found[2].lstrip("0") or "0"
    number = TOO_MUCH if len(digits) > len(str(TOO_MUCH)) else min(int(digits), TOO_MUCH)
    return -number if found[1] == "-" else number


# --- traits ----------------------------------------------------------------------------------------------------------


def traits(values: Sequence[str], version: Version) -> Traits:
    """What the occurrences of ``required`` ask for; before mv.ANY_TRAITS the last one alone is looked at."""
    if version < mv.ANY_TRAITS:
        values = values[-1:]
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required[_any_of(value, version)] = None
        else:
            plain, unwanted = _each_of(value, version)
            required.update(dict.fromkeys(frozenset({trait}) for trait in plain))
            forbidden.update(unwanted)
    return Traits(tuple(required), frozenset(forbidden))


def _any_of(value: str, version: Version) -> frozenset[str]:
    if version < mv.ANY_TRAITS:
        raise errors.InvalidQuery(
            reason=f"The format '{_ANY_OF_FORM}' only supported since microversion {mv.ANY_TRAITS}. Got: {value}"
        )
    names = [piece.strip() for piece in value.removeprefix("in:").split(",")]
    if not all(names):
        raise _empty_trait(_ANY_OF_FORM, value)
    if any(name.startswith("!") for name in names):
        raise errors.InvalidQuery(reason=f"The format '{_ANY_OF_FORM}' does not support forbidden traits. Got: {value}")
    return frozenset(names)


def _each_of(value: str, version: Version) -> tuple[list[str], list[str]]:
    """The traits wanted and those not wanted; any number of exclamation marks is one."""
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if version >= mv.FORBIDDEN_TRAITS else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    names = [piece.strip() for piece in value.split(",")]
    plain = [name for name in names if not name.startswith("!")]
    unwanted = [name.lstrip("!") for name in names if name.startswith("!")]
    if not all(plain + unwanted):
        raise _empty_trait(form, value)
    if unwanted and version < mv.FORBIDDEN_TRAITS:
        raise errors.InvalidQuery(reason=f"Expected 'required' parameter value of the form: {form}. Got: {value}")
    return plain, unwanted


def _empty_trait(form: str, value: str) -> errors.InvalidQuery:
    return errors.InvalidQuery(
        reason=f"Expected 'required' parameter value of the form: {form}. Got an empty trait in: {value}"
    )


def conflicts(traits: Traits) -> AnyOf:
    """The required sets of which every trait is forbidden too.  Fine in a list, which is then empty; in a search for
    candidates it is a mistake of the client: see ``refuse_conflicts``."""
    return tuple(names for names in traits.required if names <= traits.forbidden)


def refuse_conflicts(groups: Mapping[str, Traits]) -> None:
    """Raises ConflictingTraits if a group, given under its suffix, can be met by nobody."""
    found = [
        f"required{suffix}: ({', '.join(sorted(names))})"
        for suffix, traits in groups.items()
        for names in conflicts(traits)
    ]
    if found:
        raise errors.ConflictingTraits(conflicts=", ".join(found))


def root_required(values: Sequence[str]) -> Traits:
    """What is asked of the root of a tree; it knows single traits only, at every version."""
    if len(values) > 1:
        raise errors.RepeatedRootRequired()
    asked = traits(values, mv.ROOT_REQUIRED)
    if found := conflicts(asked):
        raise errors.ConflictingRootTraits(traits=", ".join(sorted(frozenset().union(*found))))
    return asked


# --- places ----------------------------------------------------------------------------------------------------------


def membership(values: Sequence[str], version: Version, suffix: str = "") -> Membership:
    """What the occurrences of ``member_of<suffix>`` ask for."""
    if len(values) > 1 and version < mv.REPEATED_MEMBER_OF:
        raise errors.RepeatedMemberOf(suffix=suffix)
    member_of: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        uuids = _aggregates(value)
        if not value.startswith("!"):
            member_of[uuids] = None
        elif version < mv.FORBIDDEN_AGGREGATES:
            raise errors.ForbiddenMemberOf(suffix=suffix)
        else:
            forbidden |= uuids
    return Membership(tuple(member_of), frozenset(forbidden))


def _aggregates(value: str) -> frozenset[str]:
    unsigned = value.removeprefix("!")
    if unsigned.startswith("in:"):
        uuids = unsigned.removeprefix("in:").split(",")
    elif "," in unsigned:
        raise errors.UnprefixedMemberOf(got=value)
    else:
        uuids = [unsigned]
    for uuid in uuids:
        if not uuidutils.is_uuid_like(uuid):
            raise errors.InvalidQuery(reason=f"Expected 'member_of' parameter to contain valid UUID(s). Got: {uuid}")
    return frozenset(uuids)


def in_tree(values: Iterable[str]) -> str | None:
    """Any provider of the wanted tree: the last uuid, as the client spells it.  All must be uuids."""
    uuid = None
    for value in values:
        uuid = value.strip()
        if not uuidutils.is_uuid_like(uuid):
            raise errors.InvalidQuery(reason=f"Expected 'in_tree' parameter to be a format of uuid. Got: {uuid}")
    return uuid


def same_subtree(values: Iterable[str]) -> tuple[frozenset[str], ...]:
    """The sets of suffixes to be held together, each once."""
    sets = [frozenset(piece.strip() for piece in value.split(",")) for value in values]
    if any("" in suffixes for suffixes in sets):
        raise errors.UnsuffixedInSubtree()
    return tuple(dict.fromkeys(sets))
