"""The response to a dry run (docs: api-dry-run)."""

from __future__ import annotations

from placement.schemas.declarations import ANYTHING, Field, Object, integer, string
from placement.schemas.reply_types import by_class, by_uuid

_RESPONSE = Object(
    Field("status", integer(minimum=200, maximum=499), required=True),
    Field("headers", Object(additional=string()), required=True),
    Field("body", ANYTHING),
)
_FREE_CAPACITY = Object(
    Field("capacity", integer(), required=True),
    Field("used", integer(minimum=0), required=True),
    Field("free", integer(minimum=0), required=True),
)

DRY_RUN = Object(
    Field("dry_run", _RESPONSE, required=True), Field("room", by_uuid(by_class(_FREE_CAPACITY)), required=True)
)
