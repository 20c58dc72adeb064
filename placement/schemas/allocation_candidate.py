"""/allocation_candidates"""

from __future__ import annotations

from dataclasses import replace

from placement import microversion as mv
from placement.microversion import Version
from placement.schemas.declarations import (
    UUID,
    Array,
    ChangedAt,
    Field,
    Object,
    PatternField,
    integer,
    nullable,
    string,
)
from placement.schemas.document import Query
from placement.schemas.provider import IN_TREE, MEMBER_OF, REQUIRED, RESOURCES
from placement.schemas.reply_types import AMOUNTS, TRAITS, by_class, by_uuid
from placement.schemas.success import Dated, Success

_TEXT = string()
_NUMBERED, _NAMED = "([1-9][0-9]*)?", "([a-zA-Z0-9_-]{1,64})?"


def _in_groups(
    name: str, text: str, since: Version = mv.GRANULAR_GROUPS, repeated_since: Version | None = None
) -> tuple[PatternField, PatternField]:
    """Return the fields of a parameter whose name ends with a group suffix; early versions allow only numbers."""
    named = PatternField(f"^{name}{_NAMED}$", _TEXT, since=mv.STRING_SUFFIXES, text=text, repeated_since=repeated_since)
    return replace(named, name=f"^{name}{_NUMBERED}$", since=since, until=mv.STRING_SUFFIXES), named


PARAMETERS = (
    Field("resources", _TEXT, required=True, until=mv.GRANULAR_GROUPS, text=RESOURCES),
    Field(
        "limit",
        string(pattern="^[1-9][0-9]*$"),
        since=mv.CANDIDATES_LIMIT,
        text="The maximum number of candidates.",
    ),
    Field("required", _TEXT, since=mv.CANDIDATES_REQUIRED, until=mv.GRANULAR_GROUPS, text=REQUIRED),
    Field(
        "member_of",
        _TEXT,
        since=mv.CANDIDATES_MEMBER_OF,
        until=mv.GRANULAR_GROUPS,
        text=MEMBER_OF,
        repeated_since=mv.REPEATED_MEMBER_OF,
    ),
    Field(
        "group_policy",
        string(enum=["none", "isolate"]),
        since=mv.GRANULAR_GROUPS,
        text="Whether suffixed groups must use different providers (isolate) or may share one (none).",
    ),
    Field("root_required", _TEXT, since=mv.ROOT_REQUIRED, text="Traits of the root of the tree: TRAIT,!TRAIT."),
    Field(
        "same_subtree",
        _TEXT,
        since=mv.SAME_SUBTREE,
        text="Suffixes of groups: one of their providers must be the same as, or an ancestor of, each of the others.",
        repeated_since=mv.SAME_SUBTREE,
    ),
    *_in_groups("resources", RESOURCES),
    *_in_groups("required", REQUIRED, repeated_since=mv.ANY_TRAITS),
    *_in_groups("member_of", MEMBER_OF, repeated_since=mv.REPEATED_MEMBER_OF),
    *_in_groups("in_tree", IN_TREE, since=mv.CANDIDATES_IN_TREE),
)
LIST = Query(Object(*PARAMETERS))

#: The header of a response that may lack candidates, because the search has exhausted its budget: its value is
#: "operations" or "memory".
INCOMPLETE = "x-placement-incomplete"

_AMOUNTS = Field("resources", AMOUNTS, required=True)
_PROVIDER = Field("resource_provider", Object(Field("uuid", UUID, required=True)), required=True)
_ALLOCATIONS = ChangedAt(
    mv.ALLOCATIONS_BY_PROVIDER, before=Array(Object(_PROVIDER, _AMOUNTS)), after=by_uuid(Object(_AMOUNTS))
)
_REQUEST = Object(
    Field("allocations", _ALLOCATIONS, required=True),
    # Uuids of providers, by the suffix of the group; the suffix of the unsuffixed group is empty.
    Field("mappings", Object(PatternField("^[a-zA-Z0-9_-]{0,64}$", Array(UUID))), required=True, since=mv.MAPPINGS),
)
_LEVEL = Object(
    Field("capacity", integer(), required=True),
    Field("used", integer(minimum=0), required=True),
)
_SUMMARY = Object(
    Field("resources", by_class(_LEVEL), required=True),
    Field("traits", TRAITS, required=True, since=mv.CANDIDATES_REQUIRED),
    Field("parent_provider_uuid", nullable(UUID), required=True, since=mv.NESTED_CANDIDATES),
    Field("root_provider_uuid", UUID, required=True, since=mv.NESTED_CANDIDATES),
)

LIST_REPLIES = (
    Success(
        200,
        Object(
            Field("allocation_requests", Array(_REQUEST), required=True),
            Field("provider_summaries", by_uuid(_SUMMARY), required=True),
        ),
        headers=((INCOMPLETE, "The part of its budget that the search has exhausted: operations or memory."),),
        dated=Dated.ALWAYS,
    ),
)
