"""/usages"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import IDENTIFIER, Field, Object, string
from placement.schemas.document import Query

LIST = Query(
    Object(
        Field("project_id", IDENTIFIER, required=True),
        Field("user_id", IDENTIFIER),
        Field(
            "consumer_type",
            string(pattern="^[A-Z0-9_]+$|^all|^unknown$", minLength=1, maxLength=255),
            since=mv.CONSUMER_TYPES,
        ),
    )
)
