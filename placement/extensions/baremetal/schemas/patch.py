"""The bodies of PATCH."""

from __future__ import annotations

from placement.schemas.declarations import Array, Field, Object, SchemaType, string
from placement.schemas.document import Body


def patch(value: SchemaType) -> Body:
    """Return the schema of a JSON patch with values of this type."""
    return Body(
        Array(
            Object(
                Field("op", string(enum=["add", "replace", "remove"]), required=True),
                Field("path", string(), required=True),
                Field("value", value),
            )
        )
    )
