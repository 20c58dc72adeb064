"""/usages, /resource_providers/{uuid}/usages"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import (
    IDENTIFIER,
    RESOURCE_CLASS_NAME,
    ChangedAt,
    Field,
    Object,
    PatternField,
    integer,
    string,
)
from placement.schemas.document import Query
from placement.schemas.reply_types import AMOUNTS, SHOWN_GENERATION
from placement.schemas.success import ok

LIST = Query(
    Object(
        Field("project_id", IDENTIFIER, required=True, text="The project that owns the consumers."),
        Field("user_id", IDENTIFIER, text="The user that owns them."),
        Field(
            "consumer_type",
            string(pattern="^[A-Z0-9_]+$|^all|^unknown$", minLength=1, maxLength=255),
            since=mv.CONSUMER_TYPES,
            text="The type of the consumers; unknown for consumers without a type, all for the sum over all types.",
        ),
    )
)

_COUNT = Field("consumer_count", integer(minimum=1), required=True)
#: The usages of the consumers of one type.
_OF_TYPE = Object(_COUNT, PatternField(RESOURCE_CLASS_NAME, integer(minimum=0)))
#: Usages by consumer type; ``unknown`` stands for consumers without a type, ``all`` for the sum over all types.
_BY_TYPE = Object(PatternField(f"{RESOURCE_CLASS_NAME}|^unknown$|^all$", _OF_TYPE))

OF_PROVIDER_REPLIES = ok(Object(SHOWN_GENERATION, Field("usages", AMOUNTS, required=True)))
OF_PROJECT_REPLIES = ok(
    Object(Field("usages", ChangedAt(mv.CONSUMER_TYPES, before=AMOUNTS, after=_BY_TYPE), required=True))
)
