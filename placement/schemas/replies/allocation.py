"""The replies of /allocations, /allocations/{consumer_uuid}, /resource_providers/{uuid}/allocations"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import Field, Object, integer, string
from placement.schemas.replies.common import AMOUNTS, GENERATION, by_uuid
from placement.schemas.success import NO_CONTENT, ok

_RESOURCES = Field("resources", AMOUNTS, required=True)
_OF_CONSUMER = by_uuid(Object(_RESOURCES, Field("generation", integer(minimum=0), required=True)))
_CONSUMER_GENERATION = Field("consumer_generation", integer(minimum=0), since=mv.CONSUMER_GENERATION)
_SHARE = Object(
    _RESOURCES, Field("consumer_generation", integer(minimum=0), required=True, since=mv.CONSUMER_GENERATION)
)

#: A consumer that has no allocations is shown without an owner.
SHOW = ok(
    Object(
        Field("allocations", _OF_CONSUMER, required=True),
        Field("project_id", string(), since=mv.ALLOCATIONS_BY_PROVIDER),
        Field("user_id", string(), since=mv.ALLOCATIONS_BY_PROVIDER),
        _CONSUMER_GENERATION,
        Field("consumer_type", string(), since=mv.CONSUMER_TYPES),
    )
)
REPLACE = CREATE = DELETE = NO_CONTENT
OF_PROVIDER = ok(Object(GENERATION, Field("allocations", by_uuid(_SHARE), required=True)))
