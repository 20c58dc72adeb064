"""What a provider stands for in a query: it and all below it, or it alone (docs: v1-names)."""

from __future__ import annotations

from placement.errors import Violation
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.overview.trees import depth_first
from placement.index.snapshot import Snapshot
from placement.schemas.declarations import Field, string
from placement.schemas.document import Parameters

#: The parameter that goes with one that names a provider.
ONLY = Field("only", string(enum=["provider"]), text="The provider itself, without all below it.")


def check_only(parameters: Parameters) -> None:
    """Raise InvalidField if the query limits a provider that it does not name."""
    if ONLY.name in parameters and "provider" not in parameters:
        raise InvalidField(Violation(ONLY.name, "is given without provider", "a provider beside it"))


def scope(snapshot: Snapshot, slot: int, parameters: Parameters) -> list[int]:
    """Return the slots of a provider and all below it; of it alone, if the query says so."""
    return [slot] if ONLY.name in parameters else [*depth_first(snapshot, slot)]
