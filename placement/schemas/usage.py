"""/usages"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import IDENTIFIER, Field, Object, string
from placement.schemas.document import Query

LIST = Query(
    Object(
        Field("project_id", IDENTIFIER, required=True, text="The project that owns the consumers."),
        Field("user_id", IDENTIFIER, text="The user that owns them."),
        Field(
            "consumer_type",
            string(pattern="^[A-Z0-9_]+$|^all|^unknown$", minLength=1, maxLength=255),
            since=mv.CONSUMER_TYPES,
            text="Their type: unknown for those without one, all for the sum over all types.",
        ),
    )
)
