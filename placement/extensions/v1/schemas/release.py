"""DELETE /v1/claims (docs: v1-claims-release)"""

from __future__ import annotations

from typing import Any

from placement.extensions.v1.bulk_release import ReleaseResult
from placement.extensions.v1.schemas import numeral
from placement.extensions.v1.schemas.consumer import CONDITIONS
from placement.extensions.v1.schemas.scope import ONLY
from placement.schemas import success
from placement.schemas.declarations import UUID, Array, Field, Object, boolean, string
from placement.schemas.document import Query
from placement.schemas.validator import LENIENT
from placement.version_history import OLDEST

#: Consumers that one request releases by conditions, unless it states a limit.
DEFAULT_LIMIT = 10_000

QUERY = Query(
    Object(
        Field("consumer", UUID, text="A consumer to release; may be repeated.", repeated_since=OLDEST),
        *CONDITIONS,
        Field(
            "limit",
            numeral.up_to(100_000),
            text=f"The maximum number of consumers to release by conditions; {DEFAULT_LIMIT} by default.",
        ),
    ),
    formats=LENIENT,
)
#: Parameters that may be the only condition.
CONDITION_NAMES = frozenset(field.name for field in CONDITIONS) - {ONLY.name}

REPLIES = success.ok(
    Object(
        Field("released", Array(string()), required=True),
        Field("missing", Array(string()), required=True),
        Field("complete", boolean(), required=True),
    ),
    dated=success.Dated.NEVER,
)


def document(result: ReleaseResult) -> dict[str, Any]:
    """Return the document of a release."""
    return {"released": result.released, "missing": result.missing, "complete": result.complete}
