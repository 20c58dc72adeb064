"""The values of single parameters of a query string (docs: api-filters, api-candidate-checks).

Each function takes text that conforms to the schema of the query, and raises a BadRequest with the sentence of the API.
No name is looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from placement import errors
from placement import microversion as mv
from placement.microversion import Version
from placement.search.query.query import NameCondition
from placement.uuids import is_uuid

#: An amount that no inventory can supply, in place of every greater amount: it fits into 64 bits with room for sums.
TOO_MUCH = 2**31

_INTEGER = re.compile(r"\s*([+-]?)([0-9]+)\s*")
_ANY_OF_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"


# --- amounts ---------------------------------------------------------------------------------------------------------


def resources(value: str) -> dict[str, int]:
    """Return the amount of each class; of a class that is named twice the last amount counts."""
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
    """Return the number of candidates that are requested."""
    return _bounded(value) or TOO_MUCH


def _bounded(text: str) -> int | None:
    """Return the number, TOO_MUCH in place of a greater one, or None if the text is no integer.

    The text may have more digits than int() accepts.
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    # The pattern does not skip leading zeros: it would backtrack over every way to divide them.
    digits = found[2].lstrip("0") or "0"
    number = TOO_MUCH if len(digits) > len(str(TOO_MUCH)) else min(int(digits), TOO_MUCH)
    return -number if found[1] == "-" else number


# --- traits ----------------------------------------------------------------------------------------------------------


def traits(values: Sequence[str], version: Version) -> NameCondition:
    """Return what the values of ``required`` ask for together; before mv.ANY_TRAITS only the last one counts."""
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
    return NameCondition(tuple(required), frozenset(forbidden))


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
    """Return the required and the forbidden traits; several exclamation marks count as one."""
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


def check_conflicts(groups: Mapping[str, NameCondition]) -> None:
    """Raise ConflictingTraits if a group, given by its suffix, requires what it forbids.

    In a list of providers this is no mistake: the list is empty.
    """
    found = [
        f"required{suffix}: ({', '.join(sorted(names))})"
        for suffix, requirement in groups.items()
        for names in requirement.conflicts
    ]
    if found:
        raise errors.ConflictingTraits(conflicts=", ".join(found))


def root_traits(values: Sequence[str]) -> NameCondition:
    """Return what ``root_required`` asks for; it takes single traits only, at every version."""
    if len(values) > 1:
        raise errors.RepeatedRootRequired()
    requirement = traits(values, mv.ROOT_REQUIRED)
    if found := requirement.conflicts:
        raise errors.ConflictingRootTraits(traits=", ".join(sorted(frozenset().union(*found))))
    return requirement


# --- aggregates, trees -----------------------------------------------------------------------------------------------


def aggregates(values: Sequence[str], version: Version, suffix: str = "") -> NameCondition:
    """Return what the values of ``member_of<suffix>`` ask for together."""
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
    return NameCondition(tuple(member_of), frozenset(forbidden))


def _aggregates(value: str) -> frozenset[str]:
    unsigned = value.removeprefix("!")
    if unsigned.startswith("in:"):
        uuids = unsigned.removeprefix("in:").split(",")
    elif "," in unsigned:
        raise errors.UnprefixedMemberOf(got=value)
    else:
        uuids = [unsigned]
    for uuid in uuids:
        if not is_uuid(uuid):
            raise errors.InvalidQuery(reason=f"Expected 'member_of' parameter to contain valid UUID(s). Got: {uuid}")
    return frozenset(uuids)


def in_tree(values: Iterable[str]) -> str | None:
    """Return the last uuid, in the spelling of the client.  All values must be uuids."""
    uuid = None
    for value in values:
        uuid = value.strip()
        if not is_uuid(uuid):
            raise errors.InvalidQuery(reason=f"Expected 'in_tree' parameter to be a format of uuid. Got: {uuid}")
    return uuid


def same_subtrees(values: Iterable[str]) -> tuple[frozenset[str], ...]:
    """Return the set of suffixes of each value; equal sets once."""
    sets = [frozenset(piece.strip() for piece in value.split(",")) for value in values]
    if any("" in suffixes for suffixes in sets):
        raise errors.UnsuffixedInSubtree()
    return tuple(dict.fromkeys(sets))
