"""/"""

from __future__ import annotations

from placement.schemas.declarations import Array, Field, Object, string
from placement.schemas.reply_types import LINKS
from placement.schemas.success import Success, ok

_VERSION = Object(
    *(Field(name, string(), required=True) for name in ("id", "max_version", "min_version", "status")),
    Field("links", LINKS, required=True),
)
#: The versions; for a browser, a redirect to the pages of the service, if it has any.
SHOW_REPLIES = (*ok(Object(Field("versions", Array(_VERSION), required=True))), Success(302, location=True))
