"""/resource_providers, /resource_providers/{uuid}"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import UUID, Field, Object, integer, nullable, string
from placement.schemas.document import Body, Query

#: The generation of the provider that the client believes; in every body of a write that checks it.
GENERATION = Field("resource_provider_generation", integer())

_NAME = Field("name", string(maxLength=200), required=True)
_PARENT = Field("parent_provider_uuid", nullable(UUID), since=mv.NESTED)

CREATE = Body(Object(_NAME, Field("uuid", UUID), _PARENT))
UPDATE = Body(Object(_NAME, _PARENT))
LIST = Query(
    Object(
        Field("name", string()),
        Field("uuid", UUID),
        Field("member_of", string(), since=mv.MEMBER_OF),
        Field("resources", string(), since=mv.RESOURCES_FILTER),
        Field("in_tree", UUID, since=mv.NESTED),
        Field("required", string(), since=mv.REQUIRED_FILTER),
    ),
    repeated={"member_of": mv.REPEATED_MEMBER_OF, "required": mv.ANY_TRAITS},
)
