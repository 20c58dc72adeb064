"""/v1/doctor"""

from __future__ import annotations

from placement.checks.finding import Severity
from placement.extensions.doctor import checks
from placement.schemas.declarations import Array, Field, Object, boolean, integer, nullable, number, string
from placement.schemas.document import Query
from placement.schemas.success import ok
from placement.version_history import OLDEST

#: Maximum number of places shown per finding.
MAX_PLACES = 1000

SHOW = Query(
    Object(
        Field(
            "check",
            string(enum=list(checks.NAMES)),
            text="Run only this check; may be repeated.",
            repeated_since=OLDEST,
        )
    )
)


_FINDING = Object(
    Field("severity", string(enum=[severity.name.lower() for severity in Severity]), required=True),
    Field("check", string(), required=True),
    Field("what", string(), required=True),
    Field("count", integer(minimum=0), required=True),
    Field("where", Array(string()), required=True),
    Field("fix", string(), required=True),
    Field("fixable", boolean(), required=True),
)
_CHECK = Object(
    Field("name", string(), required=True),
    Field("seconds", number(minimum=0), required=True),
    Field("not_made", nullable(string()), required=True),
)

REPLIES = ok(Object(Field("findings", Array(_FINDING), required=True), Field("checks", Array(_CHECK), required=True)))
