"""Parsing of queries (docs: api-filters, api-candidate-parameters, api-candidate-checks).

``search_query`` and ``provider_filter`` parse the parameters of a query string, which conform to the schema of their
version.  For queries in other formats, the functions for single values and ``query_of`` do the same.  The checks in
this module cannot be expressed by a schema; their order is part of the API.  Names are not looked up: ``existence``
refuses classes and traits that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from placement import errors
from placement import microversion as mv
from placement.errors import Violation
from placement.microversion import Version
from placement.search.query.query import UNSUFFIXED, Group, NameCondition, ProviderFilter, SearchQuery
from placement.uuids import is_uuid

#: An amount that exceeds every inventory, and replaces greater amounts; sums of it fit into 64 bits.
TOO_MUCH = 2**31

#: A pattern of the parameters of groups, divided into the name and the suffix.
GROUP = re.compile(r"(resources|required|member_of|in_tree)(.*)", re.DOTALL)
_INTEGER = re.compile(r"\s*([+-]?)([0-9]+)\s*")
_ANY_OF_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"
_ANY_OF_EXPECTED = f"traits without !, for example {_ANY_OF_FORM}"


class QueryParameters(Protocol):
    """The parameters of a query string."""

    def get(self, name: str) -> str | None:
        """Return the value that counts, for a parameter that takes one value."""

    def all(self, name: str) -> Sequence[str]:
        """Return every value of the name, in order."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return all names and values, in the order of the query string."""


# --- queries ---------------------------------------------------------------------------------------------------------


def search_query(parameters: QueryParameters, version: Version) -> SearchQuery:
    """Return the query of GET /allocation_candidates.

    Raises:
        errors.BadRequest: A parameter or a combination of parameters is invalid; the first one is reported.
    """
    root = root_traits(parameters.all("root_required"))
    subtrees = same_subtrees(parameters.all("same_subtree"))
    limit_text = parameters.get("limit")
    return query_of(
        _groups(parameters, version),
        version,
        policy=parameters.get("group_policy"),
        same_subtrees=subtrees,
        root_traits=root,
        limit=None if limit_text is None else limit(limit_text),
    )


def query_of(
    groups: Mapping[str, Group],
    version: Version,
    *,
    policy: str | None,
    same_subtrees: tuple[frozenset[str], ...],
    root_traits: NameCondition,
    limit: int | None = None,
) -> SearchQuery:
    """Return the query with these groups and with the rules between them.

    Args:
        groups: Groups by suffix.
        policy: ``none``, ``isolate``, or None if the client states no policy.

    Raises:
        errors.BadRequest: A combination is invalid; the first one is reported.
    """
    if version >= mv.SAME_SUBTREE:
        _check_subtrees(groups, same_subtrees)
    else:
        _check_resources(groups)
    if version >= mv.FORBIDDEN_TRAITS:
        _check_conflicts(groups)
    if policy is None and len(groups) - (UNSUFFIXED in groups) > 1:
        raise errors.NoGroupPolicy()
    return SearchQuery(
        groups=tuple(groups.values()),
        isolate=policy == "isolate",
        same_subtrees=same_subtrees,
        root_traits=root_traits,
        nested=version >= mv.NESTED_CANDIDATES,
        limit=limit,
    )


def provider_filter(parameters: QueryParameters, version: Version) -> ProviderFilter:
    """Return the provider filter of GET /resource_providers (docs: api-filters).

    Raises:
        errors.BadRequest: A parameter is invalid; the first one is reported.
    """
    required = traits(parameters.all("required"), version, "required")
    member_of = aggregates(parameters.all("member_of"), version)
    amounts = parameters.get("resources")
    group = Group(
        resources={} if amounts is None else resources(amounts, "resources"),
        traits=required,
        aggregates=member_of,
        in_tree=parameters.get("in_tree"),
    )
    return ProviderFilter(parameters.get("name") or None, parameters.get("uuid"), group)


def _groups(parameters: QueryParameters, version: Version) -> dict[str, Group]:
    """Return the groups by suffix, in the order in which the query string first names them.

    The first error in the query string is reported.  All values of a parameter are parsed at its first occurrence,
    except that each value of ``resources`` is parsed at its own position.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, value in parameters.items():
        parameter = GROUP.fullmatch(name)
        if parameter is None:
            continue
        suffix = parameter[2]
        group = groups.setdefault(suffix, {"suffix": suffix})
        match parameter[1]:
            case "resources":
                group["resources"] = resources(value, name)
            case "required" if "traits" not in group:
                group["traits"] = traits(parameters.all(name), version, name)
            case "member_of" if "aggregates" not in group:
                group["aggregates"] = aggregates(parameters.all(name), version, suffix)
            case "in_tree" if "in_tree" not in group:
                group["in_tree"] = in_tree(parameters.all(name))
    return {suffix: Group(**group) for suffix, group in groups.items()}


def _check_resources(groups: Mapping[str, Group]) -> None:
    """Check that every group has resources, as versions before SAME_SUBTREE require."""
    without_resources = [group for group in groups.values() if not group.resources]
    if required := [f"required{group.suffix}" for group in without_resources if group.traits.any_of]:
        raise errors.TraitsWithoutResources(keys=", ".join(sorted(required)))
    if member_of := [f"member_of{group.suffix}" for group in without_resources if group.aggregates.names]:
        raise errors.MemberOfWithoutResources(keys=", ".join(sorted(member_of)))
    if without_resources:
        raise errors.GroupWithoutResources()
    if not groups:
        raise errors.NoGroup()


def _check_subtrees(groups: Mapping[str, Group], subtrees: Iterable[frozenset[str]]) -> None:
    """Check that groups without resources are named by ``same_subtree``, and that all named groups exist."""
    without_resources = [suffix for suffix, group in groups.items() if not group.resources]
    if len(without_resources) == len(groups):
        raise errors.NoResources()
    named = frozenset().union(*subtrees)
    if outside := sorted({*without_resources} - named):
        kind = errors.UnsuffixedWithoutResources if UNSUFFIXED in outside else errors.GroupOutsideSubtree
        raise kind(suffixes=outside, named=", ".join(outside))
    if unknown := sorted(named - groups.keys()):
        suffixes = ", ".join(filter(None, groups))
        valid_suffixes = (
            f"suffixes among {suffixes}" if suffixes else "suffixes of groups in the query, which names no group"
        )
        raise errors.UnknownSuffixes(
            suffixes=unknown, groups=list(groups), unknown=", ".join(unknown), known=valid_suffixes
        )


def _check_conflicts(groups: Mapping[str, Group]) -> None:
    """Check that no group requires a trait that it forbids; a provider filter with such a trait matches no provider."""
    conflicting = [
        (f"required{suffix}", ", ".join(sorted(names)))
        for suffix, group in groups.items()
        for names in group.traits.conflicts
    ]
    if conflicting:
        conflicts = ", ".join(f"{parameter}: ({names})" for parameter, names in conflicting)
        parameter, names = conflicting[0]
        raise errors.ConflictingTraits(conflicts=conflicts, parameter=parameter, traits=names)


# --- amounts ---------------------------------------------------------------------------------------------------------


def resources(value: str, parameter: str) -> dict[str, int]:
    """Return the amount of each class; the last amount counts if a class is repeated."""
    if not value.strip():
        raise errors.MalformedResources(got="empty string", parameter=parameter, problem="is empty")
    amounts = {}
    for piece in value.split(","):
        if piece.count(":") != 1:
            problem = f'has "{piece}", which is not CLASS:AMOUNT' if piece else f'has an empty part, "{value}"'
            raise errors.MalformedResources(got=piece, parameter=parameter, problem=problem)
        resource_class, _, text = piece.partition(":")
        amount = _bounded_number(text)
        if amount is None:
            raise errors.AmountNotInteger(parameter=parameter, resource_class=resource_class, got=text)
        if amount < 1:
            raise errors.AmountTooSmall(parameter=parameter, resource_class=resource_class, got=text.strip())
        amounts[resource_class] = amount
    return amounts


def limit(value: str) -> int:
    """Return the requested maximum number of candidates, at most TOO_MUCH."""
    return _bounded_number(value) or TOO_MUCH


def _bounded_number(text: str) -> int | None:
    """Return the number, at most TOO_MUCH; None if the text is not an integer.

    The text may have more digits than int() accepts.
    """
    integer = _INTEGER.fullmatch(text)
    if integer is None:
        return None
    # The pattern does not skip leading zeros, because it would backtrack over every way to divide them.
    digits = integer[2].lstrip("0") or "0"
    number = TOO_MUCH if len(digits) > len(str(TOO_MUCH)) else min(int(digits), TOO_MUCH)
    return -number if integer[1] == "-" else number


# --- traits ----------------------------------------------------------------------------------------------------------


def traits(values: Sequence[str], version: Version, parameter: str) -> NameCondition:
    """Return the condition of all values of ``required``; before ANY_TRAITS only the last value counts."""
    if version < mv.ANY_TRAITS:
        values = values[-1:]
    required: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required[_any_of(value, version, parameter)] = None
        else:
            plain, negated = _single_traits(value, version, parameter)
            required.update(dict.fromkeys(frozenset({trait}) for trait in plain))
            forbidden.update(negated)
    return NameCondition(tuple(required), frozenset(forbidden))


def _any_of(value: str, version: Version, parameter: str) -> frozenset[str]:
    if version < mv.ANY_TRAITS:
        raise errors.InvalidQuery(
            f"The format '{_ANY_OF_FORM}' only supported since microversion {mv.ANY_TRAITS}. Got: {value}",
            Violation(parameter, f'has alternatives, "{value}"', "single traits, for example TRAIT_A,!TRAIT_B"),
        )
    names = [piece.strip() for piece in value.removeprefix("in:").split(",")]
    if not all(names):
        raise _empty_trait(_ANY_OF_FORM, value, parameter)
    if any(name.startswith("!") for name in names):
        raise errors.InvalidQuery(
            f"The format '{_ANY_OF_FORM}' does not support forbidden traits. Got: {value}",
            Violation(parameter, f'forbids a trait among alternatives, "{value}"', _ANY_OF_EXPECTED),
        )
    return frozenset(names)


def _single_traits(value: str, version: Version, parameter: str) -> tuple[list[str], list[str]]:
    """Return the required and the forbidden traits; several exclamation marks count as one."""
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if version >= mv.FORBIDDEN_TRAITS else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    names = [piece.strip() for piece in value.split(",")]
    plain = [name for name in names if not name.startswith("!")]
    negated = [name.lstrip("!") for name in names if name.startswith("!")]
    if not all(plain + negated):
        raise _empty_trait(form, value, parameter)
    if negated and version < mv.FORBIDDEN_TRAITS:
        raise errors.InvalidQuery(reason=f"Expected 'required' parameter value of the form: {form}. Got: {value}")
    return plain, negated


def _empty_trait(form: str, value: str, parameter: str) -> errors.InvalidQuery:
    return errors.InvalidQuery(
        f"Expected 'required' parameter value of the form: {form}. Got an empty trait in: {value}",
        Violation(parameter, f'has an empty name, "{value}"', f"traits, for example {form}"),
    )


def root_traits(values: Sequence[str]) -> NameCondition:
    """Return the condition of ``root_required``, which takes only single traits, at every version."""
    if len(values) > 1:
        raise errors.RepeatedRootRequired()
    condition = traits(values, mv.ROOT_REQUIRED, "root_required")
    if conflicts := condition.conflicts:
        raise errors.ConflictingRootTraits(traits=", ".join(sorted(frozenset().union(*conflicts))))
    return condition


# --- aggregates, trees -----------------------------------------------------------------------------------------------


def aggregates(values: Sequence[str], version: Version, suffix: str = "") -> NameCondition:
    """Return the condition of all values of ``member_of<suffix>``."""
    if len(values) > 1 and version < mv.REPEATED_MEMBER_OF:
        raise errors.RepeatedMemberOf(suffix=suffix)
    member_of: dict[frozenset[str], None] = {}
    forbidden: set[str] = set()
    for value in values:
        uuids = _aggregates(value, f"member_of{suffix}")
        if not value.startswith("!"):
            member_of[uuids] = None
        elif version < mv.FORBIDDEN_AGGREGATES:
            raise errors.ForbiddenMemberOf(suffix=suffix)
        else:
            forbidden |= uuids
    return NameCondition(tuple(member_of), frozenset(forbidden))


def _aggregates(value: str, parameter: str) -> frozenset[str]:
    unsigned = value.removeprefix("!")
    if unsigned.startswith("in:"):
        uuids = unsigned.removeprefix("in:").split(",")
    elif "," in unsigned:
        raise errors.UnprefixedMemberOf(parameter=parameter, got=value)
    else:
        uuids = [unsigned]
    for uuid in uuids:
        if not is_uuid(uuid):
            raise errors.InvalidQuery(
                f"Expected 'member_of' parameter to contain valid UUID(s). Got: {uuid}",
                Violation(parameter, f'has "{uuid}", which is not a uuid', "the uuid of an aggregate, or in:UUID,UUID"),
            )
    return frozenset(uuids)


def in_tree(values: Iterable[str]) -> str | None:
    """Return the last uuid, as the client spells it; all values must be uuids."""
    uuid = None
    for value in values:
        uuid = value.strip()
        if not is_uuid(uuid):
            raise errors.InvalidQuery(f"Expected 'in_tree' parameter to be a format of uuid. Got: {uuid}")
    return uuid


def same_subtrees(values: Iterable[str]) -> tuple[frozenset[str], ...]:
    """Return the set of suffixes of each value, without repetition."""
    sets: dict[frozenset[str], None] = {}
    for value in values:
        suffixes = frozenset(map(str.strip, value.split(",")))
        if "" in suffixes:
            raise errors.UnsuffixedInSubtree()
        sets[suffixes] = None
    return tuple(sets)
