"""/resource_providers, /resource_providers/{uuid}"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import UUID, Array, Field, Object, integer, nullable, string
from placement.schemas.document import Body, Query
from placement.schemas.reply_types import LINKS
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

#: The generation that the client expects, in the bodies of all writes that check it.
GENERATION = Field("resource_provider_generation", integer())

#: Texts of parameters of several routes.
RESOURCES = "Required free capacity: CLASS:AMOUNT,CLASS:AMOUNT."
REQUIRED = "Required traits: TRAIT,TRAIT; since 1.22 forbidden traits: !TRAIT; since 1.39 alternatives: in:TRAIT,TRAIT."
MEMBER_OF = "An aggregate: UUID; alternatives: in:UUID,UUID; since 1.32 forbidden aggregates: !UUID, !in:UUID,UUID."
IN_TREE = "The uuid of any provider in the tree."

_NAME = Field("name", string(maxLength=200), required=True)
_PARENT = Field("parent_provider_uuid", nullable(UUID), since=mv.NESTED)

CREATE = Body(Object(_NAME, Field("uuid", UUID), _PARENT))
UPDATE = Body(Object(_NAME, _PARENT))
LIST = Query(
    Object(
        Field("name", string(), text="The provider with exactly this name."),
        Field("uuid", UUID, text="The provider with exactly this uuid."),
        Field("member_of", string(), since=mv.MEMBER_OF, text=MEMBER_OF, repeated_since=mv.REPEATED_MEMBER_OF),
        Field("resources", string(), since=mv.RESOURCES_FILTER, text=RESOURCES),
        Field("in_tree", UUID, since=mv.NESTED, text=IN_TREE),
        Field("required", string(), since=mv.REQUIRED_FILTER, text=REQUIRED, repeated_since=mv.ANY_TRAITS),
    )
)

_PROVIDER = Object(
    Field("uuid", UUID, required=True),
    Field("name", nullable(string()), required=True),
    Field("generation", integer(minimum=0), required=True),
    Field("links", LINKS, required=True),
    Field("parent_provider_uuid", nullable(UUID), required=True, since=mv.NESTED),
    Field("root_provider_uuid", nullable(UUID), required=True, since=mv.NESTED),
)

LIST_REPLIES = ok(Object(Field("resource_providers", Array(_PROVIDER), required=True)))
CREATE_REPLIES = (
    Success(201, location=True, until=mv.PROVIDER_BODY),
    Success(200, _PROVIDER, location=True, dated=Dated.ALWAYS, since=mv.PROVIDER_BODY),
)
SHOW_REPLIES = UPDATE_REPLIES = ok(_PROVIDER)
DELETE_REPLIES = NO_CONTENT
