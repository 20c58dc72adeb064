"""/v1/allocations, /v1/allocations/{allocation}, /v1/nodes/{node}/allocation"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import os_traits
from sqlalchemy.engine import Row

from placement import errors
from placement.extensions.baremetal import versions
from placement.extensions.baremetal.objects.record import Record
from placement.extensions.baremetal.schemas import json_patch
from placement.extensions.baremetal.schemas.name import is_name
from placement.extensions.baremetal.schemas.node import MAX_TRAITS
from placement.extensions.baremetal.schemas.query import PAGING
from placement.extensions.baremetal.schemas.reply import Links, date
from placement.extensions.baremetal.versions import Version
from placement.http.request import Request
from placement.schemas.declarations import ANYTHING, Array, Field, JSONSchema, Object, SchemaType, nullable, string
from placement.schemas.document import Body
from placement.uuids import is_uuid

_STANDARD_TRAITS = frozenset(os_traits.get_traits())
_CUSTOM_TRAIT = re.compile(r"CUSTOM_[A-Z0-9_]+")
#: Maximum number of candidate nodes in a request.
MAX_CANDIDATES = 1000

FIELDS = (
    *("uuid", "name", "node_uuid", "state", "last_error", "owner", "resource_class", "traits", "candidate_nodes"),
    *("extra", "created_at", "updated_at", "links"),
)
FILTERS = ("node", "resource_class", "state", "owner")
LIST = (*FILTERS, *PAGING)
UPDATABLE = ("name", "extra")


class InvalidName(errors.BadRequest):
    template = "Cannot %(verb)s allocation with invalid name '%(name)s'"


class InvalidUuid(errors.BadRequest):
    template = "Expected a UUID but received %(uuid)s."


class InvalidIdent(errors.BadRequest):
    template = "Expected a logical name or UUID but received %(ident)s."


class UnusableTrait(errors.BadRequest):
    template = "'%(trait)s' is neither a standard trait nor CUSTOM_ followed by A-Z, 0-9 and _"


class TooMany(errors.BadRequest):
    template = "An allocation has at most %(maximum)d %(name)s: got %(count)d"


class InvalidExtra(errors.BadRequest):
    template = "extra must be an object"


@dataclass(frozen=True)
class _OrNull:
    """A type that allows null as well."""

    inner: SchemaType

    def render(self, version: Version, /) -> JSONSchema:
        rendered = self.inner.render(version)
        return {**rendered, "type": [rendered["type"], "null"]}


@dataclass(frozen=True)
class _PatchValue:
    """Values of a patch operation: neither lists nor numbers with a fraction."""

    def render(self, _version: Version, /) -> JSONSchema:
        return {"type": ["string", "object", "null", "integer", "boolean"]}


CREATE = Body(
    Object(
        Field("candidate_nodes", _OrNull(Array(string()))),
        Field("extra", _OrNull(Object(additional=ANYTHING))),
        Field("name", nullable(string())),
        Field("node", nullable(string()), since=versions.BACKFILL),
        # The handler refuses it in older versions, with 406.
        Field("owner", nullable(string(maxLength=255))),
        Field("resource_class", nullable(string(maxLength=80))),
        Field("traits", _OrNull(Array(string(maxLength=255)))),
        Field("uuid", nullable(string())),
    )
)
UPDATE = json_patch.body(_PatchValue())


def check_ident(ident: str) -> None:
    """Raise InvalidIdent unless this is a valid uuid or name of a node or an allocation."""
    if not is_name(ident) and not is_uuid(ident):
        raise InvalidIdent(ident=ident)


def check_traits(traits: Collection[str]) -> None:
    """Raise TooMany, or UnusableTrait for the first invalid trait."""
    check_count("traits", len(traits), MAX_TRAITS)
    for name in traits:
        if name not in _STANDARD_TRAITS and not _CUSTOM_TRAIT.fullmatch(name):
            raise UnusableTrait(trait=name)


def check_count(name: str, count: int, maximum: int) -> None:
    """Raise TooMany for more values than an allocation may have."""
    if count > maximum:
        raise TooMany(name=name, count=count, maximum=maximum)


def fields(version: Version) -> tuple[str, ...]:
    """Return the names of the fields in this version."""
    return tuple(name for name in FIELDS if name != "owner" or version >= versions.ALLOCATION_OWNER)


class Presentation:
    """A builder of the documents of allocations, for one request."""

    def __init__(self, req: Request, field_names: tuple[str, ...] | None = None) -> None:
        """Select the fields.

        Args:
            field_names: Names of fields; None for all fields of the version.  Links are always included.
        """
        self._links = Links(req, "allocations")
        self._names = fields(req.version) if field_names is None else (*field_names, "links")

    @property
    def columns(self) -> set[str]:
        """The columns of a record needed for the document."""
        return {"uuid", *self._names} - {"links"}

    def __call__(self, record: Record | Row[Any], **overrides: Any) -> dict[str, Any]:
        """Return the document of a record; ``overrides`` replace values of the record."""
        return {name: overrides[name] if name in overrides else self._value(record, name) for name in self._names}

    def _value(self, record: Record | Row[Any], name: str) -> Any:
        if name == "links":
            return self._links(record.uuid)
        value = getattr(record, name)
        return date(value) if name in ("created_at", "updated_at") else value
