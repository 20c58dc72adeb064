"""The replies of /resource_providers, /resource_providers/{uuid}"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import UUID, Array, Field, Object, integer, nullable, string
from placement.schemas.replies.common import LINKS
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

_PROVIDER = Object(
    Field("uuid", UUID, required=True),
    Field("name", nullable(string()), required=True),
    Field("generation", integer(minimum=0), required=True),
    Field("links", LINKS, required=True),
    Field("parent_provider_uuid", nullable(UUID), required=True, since=mv.NESTED),
    Field("root_provider_uuid", nullable(UUID), required=True, since=mv.NESTED),
)

LIST = ok(Object(Field("resource_providers", Array(_PROVIDER), required=True)))
CREATE = (
    Success(201, location=True, until=mv.PROVIDER_BODY),
    Success(200, _PROVIDER, location=True, dated=Dated.ALWAYS, since=mv.PROVIDER_BODY),
)
SHOW = UPDATE = ok(_PROVIDER)
DELETE = NO_CONTENT
