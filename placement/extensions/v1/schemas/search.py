"""Parameters of a search, as in the newest version of GET /allocation_candidates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from placement import microversion as mv
from placement.extensions.v1.schemas import numeral
from placement.schemas import allocation_candidate
from placement.schemas.declarations import Field, Object, PatternField
from placement.version_history import OLDEST

_GROUP_PARAMETERS = "resources, required, member_of and in_tree, with the suffix of a group if it has one"
PARAMETERS = tuple(
    replace(
        field,
        type=numeral.POSITIVE if field.name == "limit" else field.type,
        since=OLDEST,
        until=None,
        repeated_since=field.repeated_since and OLDEST,
    )
    for field in allocation_candidate.PARAMETERS
    if field.exists_at(mv.LATEST)
)


def object_of(fields: Iterable[Field]) -> Object:
    """Return the type of queries with these parameters."""
    fields = tuple(fields)
    names = ", ".join(field.name for field in fields if not isinstance(field, PatternField))
    return Object(*fields, names=f"{names}; {_GROUP_PARAMETERS}")


def parameters(limit: str) -> tuple[Field, ...]:
    """Return the parameters, with a description of ``limit``."""
    return tuple(replace(field, text=limit) if field.name == "limit" else field for field in PARAMETERS)
