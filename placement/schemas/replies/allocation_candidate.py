"""The replies of /allocation_candidates"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import (
    UUID,
    Array,
    ChangedAt,
    Field,
    Object,
    PatternField,
    integer,
    nullable,
)
from placement.schemas.replies.common import AMOUNTS, TRAITS, by_class, by_uuid
from placement.schemas.success import Dated, Success

#: The header of a reply that may lack candidates, because the search ran out of its budget.  Its value is what ran out,
#: "operations" or "memory".
INCOMPLETE = "x-placement-incomplete"

_RESOURCES = Field("resources", AMOUNTS, required=True)
_PROVIDER = Field("resource_provider", Object(Field("uuid", UUID, required=True)), required=True)
_ALLOCATIONS = ChangedAt(
    mv.ALLOCATIONS_BY_PROVIDER, before=Array(Object(_PROVIDER, _RESOURCES)), after=by_uuid(Object(_RESOURCES))
)
_REQUEST = Object(
    Field("allocations", _ALLOCATIONS, required=True),
    # By the suffix of a group; the unsuffixed group has the empty one.
    Field("mappings", Object(PatternField("^[a-zA-Z0-9_-]{0,64}$", Array(UUID))), required=True, since=mv.MAPPINGS),
)
_AMOUNT = Object(
    Field("capacity", integer(), required=True),
    Field("used", integer(minimum=0), required=True),
)
_SUMMARY = Object(
    Field("resources", by_class(_AMOUNT), required=True),
    Field("traits", TRAITS, required=True, since=mv.CANDIDATES_REQUIRED),
    Field("parent_provider_uuid", nullable(UUID), required=True, since=mv.NESTED_CANDIDATES),
    Field("root_provider_uuid", UUID, required=True, since=mv.NESTED_CANDIDATES),
)

LIST = (
    Success(
        200,
        Object(
            Field("allocation_requests", Array(_REQUEST), required=True),
            Field("provider_summaries", by_uuid(_SUMMARY), required=True),
        ),
        headers=((INCOMPLETE, "What the search had too little of: operations or memory."),),
        dated=Dated.ALWAYS,
    ),
)
