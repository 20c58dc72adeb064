"""/allocations, /allocations/{consumer_uuid}"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.document import Body
from placement.schemas.shape import (
    ANYTHING,
    IDENTIFIER,
    RESOURCE_CLASS_NAME,
    UUID,
    UUID_KEY,
    Array,
    Field,
    Fields,
    Object,
    Shape,
    Turning,
    integer,
    nullable,
    string,
)

_RESOURCES = Field("resources", Object(Fields(RESOURCE_CLASS_NAME, integer(minimum=1)), at_least=1), required=True)
_PROVIDER = Field("resource_provider", Object(Field("uuid", UUID, required=True), unknown_first=True), required=True)
_LISTED = Array(Object(_PROVIDER, _RESOURCES), at_least=1)
#: What a provider's generation was is accepted, so that the reply to a GET can be sent back, and not looked at.
_BY_PROVIDER = Fields(UUID_KEY, Object(Field("generation", integer()), _RESOURCES))
_SOME, _SOME_OR_NONE = Object(_BY_PROVIDER, at_least=1), Object(_BY_PROVIDER)


def _consumer(allocations: Shape, *, unknown_first: bool) -> Object:
    """What one consumer is to hold, and whose it is."""
    return Object(
        Field("allocations", allocations, required=True),
        Field("project_id", IDENTIFIER, required=True, since=mv.PROJECT_AND_USER),
        Field("user_id", IDENTIFIER, required=True, since=mv.PROJECT_AND_USER),
        Field("consumer_generation", nullable(integer()), required=True, since=mv.CONSUMER_GENERATION),
        Field(
            "mappings",
            Object(Fields("[a-zA-Z0-9_-]{1,64}", Array(UUID, at_least=1)), at_least=1, others=ANYTHING),
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
    Turning(
        mv.ALLOCATIONS_BY_PROVIDER,
        before=_consumer(_LISTED, unknown_first=False),
        after=_consumer(Turning(mv.CONSUMER_GENERATION, before=_SOME, after=_SOME_OR_NONE), unknown_first=True),
    )
)

#: Several consumers, each under its uuid.
_EACH = Fields(UUID_KEY, _consumer(_SOME_OR_NONE, unknown_first=True))
CONSUMERS = Object(_EACH, at_least=1)
CONSUMERS_OR_NONE = Object(_EACH)
CREATE = Body(CONSUMERS)
