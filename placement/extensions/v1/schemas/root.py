"""/v1"""

from __future__ import annotations

from placement.schemas.declarations import Field, Object, string
from placement.schemas.reply_types import LINKS
from placement.schemas.success import ok

SHOW = ok(
    Object(
        Field("name", string(), required=True),
        Field("version", string(), required=True),
        Field("links", LINKS, required=True),
    )
)
