"""/allocations, /allocations/{consumer_uuid}, /resource_providers/{uuid}/allocations"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import (
    ANYTHING,
    IDENTIFIER,
    RESOURCE_CLASS_NAME,
    UUID,
    UUID_KEY,
    Array,
    ChangedAt,
    Field,
    Object,
    PatternField,
    SchemaType,
    integer,
    nullable,
    string,
)
from placement.schemas.document import Body
from placement.schemas.reply_types import AMOUNTS, SHOWN_GENERATION, by_uuid
from placement.schemas.success import NO_CONTENT, ok

_RESOURCES = Field(
    "resources", Object(PatternField(RESOURCE_CLASS_NAME, integer(minimum=1)), min_properties=1), required=True
)
_PROVIDER = Field("resource_provider", Object(Field("uuid", UUID, required=True), unknown_first=True), required=True)
_ALLOCATION_LIST = Array(Object(_PROVIDER, _RESOURCES), min_items=1)
#: The generation of the provider is accepted and ignored, so that the response to a GET is a valid body.
_BY_PROVIDER = PatternField(UUID_KEY, Object(Field("generation", integer()), _RESOURCES))
_ALLOCATIONS, _ALLOCATIONS_OR_NONE = Object(_BY_PROVIDER, min_properties=1), Object(_BY_PROVIDER)


def _consumer(allocations: SchemaType, *, unknown_first: bool) -> Object:
    """Return the type of the allocations of one consumer, with its owner."""
    return Object(
        Field("allocations", allocations, required=True),
        Field("project_id", IDENTIFIER, required=True, since=mv.PROJECT_AND_USER),
        Field("user_id", IDENTIFIER, required=True, since=mv.PROJECT_AND_USER),
        Field("consumer_generation", nullable(integer()), required=True, since=mv.CONSUMER_GENERATION),
        Field(
            "mappings",
            Object(
                PatternField("[a-zA-Z0-9_-]{1,64}", Array(UUID, min_items=1)), min_properties=1, additional=ANYTHING
            ),
            since=mv.MAPPINGS,
        ),
        Field(
            "consumer_type",
            string(pattern=RESOURCE_CLASS_NAME, minLength=1, maxLength=255),
            required=True,
            since=mv.CONSUMER_TYPES,
        ),
        unknown_first=unknown_first,
    )


REPLACE = Body(
    ChangedAt(
        mv.ALLOCATIONS_BY_PROVIDER,
        before=_consumer(_ALLOCATION_LIST, unknown_first=False),
        after=_consumer(
            ChangedAt(mv.CONSUMER_GENERATION, before=_ALLOCATIONS, after=_ALLOCATIONS_OR_NONE), unknown_first=True
        ),
    )
)

#: The consumers, by uuid.
_CONSUMER_BY_UUID = PatternField(UUID_KEY, _consumer(_ALLOCATIONS_OR_NONE, unknown_first=True))
CONSUMERS = Object(_CONSUMER_BY_UUID, min_properties=1)
CONSUMERS_OR_NONE = Object(_CONSUMER_BY_UUID)
CREATE = Body(CONSUMERS)

_SHOWN_RESOURCES = Field("resources", AMOUNTS, required=True)
_SHOWN_ALLOCATIONS = by_uuid(Object(_SHOWN_RESOURCES, Field("generation", integer(minimum=0), required=True)))
_CONSUMER_GENERATION = Field("consumer_generation", integer(minimum=0), since=mv.CONSUMER_GENERATION)
_SHOWN_CONSUMER = Object(
    _SHOWN_RESOURCES, Field("consumer_generation", integer(minimum=0), required=True, since=mv.CONSUMER_GENERATION)
)

#: A consumer without allocations is shown without an owner.
SHOW_REPLIES = ok(
    Object(
        Field("allocations", _SHOWN_ALLOCATIONS, required=True),
        Field("project_id", string(), since=mv.ALLOCATIONS_BY_PROVIDER),
        Field("user_id", string(), since=mv.ALLOCATIONS_BY_PROVIDER),
        _CONSUMER_GENERATION,
        Field("consumer_type", string(), since=mv.CONSUMER_TYPES),
    )
)
REPLACE_REPLIES = CREATE_REPLIES = DELETE_REPLIES = NO_CONTENT
OF_PROVIDER_REPLIES = ok(Object(SHOWN_GENERATION, Field("allocations", by_uuid(_SHOWN_CONSUMER), required=True)))
