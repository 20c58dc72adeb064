"""The parameters that describe a search: those of the newest /allocation_candidates."""

from __future__ import annotations

from dataclasses import replace

from placement import microversion as mv
from placement.schemas import allocation_candidate
from placement.schemas.declarations import Field
from placement.version_history import OLDEST

PARAMETERS = tuple(
    replace(field, since=OLDEST, until=None, repeated_since=field.repeated_since and OLDEST)
    for field in allocation_candidate.PARAMETERS
    if field.exists_at(mv.LATEST)
)


def parameters(limit: str) -> tuple[Field, ...]:
    """Return the parameters, with what ``limit`` means."""
    return tuple(replace(field, text=limit) if field.name == "limit" else field for field in PARAMETERS)
