"""Responses of /v1/overview, /v1/providers/{provider} and /v1/consumers, and the types that they share."""

from __future__ import annotations

from placement.schemas.declarations import UUID, Array, Field, Object, OrNull, Scalar, integer, nullable, number, string
from placement.schemas.reply_types import AMOUNTS, by_class, by_uuid
from placement.schemas.success import ok


def _fields(scalar: Scalar, *names: str) -> tuple[Field, ...]:
    return tuple(Field(name, scalar, required=True) for name in names)


#: A reference to a provider, with the name of its node, if any.
NAMED = Object(
    Field("uuid", UUID, required=True),
    Field("name", nullable(string()), required=True),
    Field("node", string()),
    title="NamedProvider",
)
#: A timestamp in UTC, in whole seconds; null if not recorded.
SINCE = Field("since", nullable(string(format="date-time")), required=True)
#: The URL of the next page.
NEXT = Field("next", nullable(string()), required=True)

_INVENTORY = Object(
    *_fields(integer(), "total", "reserved", "min_unit", "max_unit", "step_size"),
    *_fields(number(), "allocation_ratio"),
    *_fields(integer(), "capacity", "used", "free"),
    title="UsedInventory",
)
PROVIDER = Object(
    *NAMED.fields,
    Field("parent", OrNull(NAMED), required=True),
    Field("root", NAMED, required=True),
    *_fields(integer(), "generation"),
    Field("traits", Array(string()), required=True),
    # As clients wrote them, with or without dashes.
    Field("aggregates", Array(string()), required=True),
    *_fields(integer(), "consumers"),
    Field("inventories", by_class(_INVENTORY), required=True),
    title="Provider",
)
_COUNTED_PROVIDERS = Object(*_fields(integer(), "count"), Field("providers", Array(NAMED), required=True))
#: The owner; null if another implementation left no row for the project or the user.
_OWNER = _fields(nullable(string()), "project", "user")
_HOLDER = Object(
    *_fields(string(), "consumer", "type"),
    *_OWNER,
    SINCE,
    Field("provider", NAMED, required=True),
    Field("resources", AMOUNTS, required=True),
)
_ALLOCATION = Object(
    Field("name", nullable(string()), required=True),
    Field("resources", AMOUNTS, required=True),
    Field("node", string()),
)
_CONSUMER = Object(
    *_fields(string(), "uuid", "type"),
    *_OWNER,
    *_fields(integer(), "generation"),
    SINCE,
    Field("expires_at", nullable(string(format="date-time")), required=True),
    Field("allocations", by_uuid(_ALLOCATION), required=True),
)

OVERVIEW = ok(Object(Field("providers", Array(PROVIDER), required=True), NEXT))
SHOW_PROVIDER = ok(
    Object(
        Field("provider", PROVIDER, required=True),
        Field("tree", Array(PROVIDER), required=True),
        Field("consumers_in_tree", integer(minimum=0), required=True),
        Field("shares_with", _COUNTED_PROVIDERS, required=True),
        Field("shared_by", _COUNTED_PROVIDERS, required=True),
        Field("holders", Array(_HOLDER), required=True),
        NEXT,
    )
)
CONSUMERS = ok(Object(Field("consumers", Array(_CONSUMER), required=True), NEXT))
