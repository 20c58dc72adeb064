"""The scope of a provider in a query: its subtree, or the provider alone (docs: v1-names)."""

from __future__ import annotations

from placement.errors import Violation
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.overview.trees import depth_first
from placement.index.snapshot import Snapshot
from placement.schemas.declarations import Field, string
from placement.schemas.document import Parameters

#: The parameter that limits ``provider``.
ONLY = Field("only", string(enum=["provider"]), text="The provider itself, without its descendants.")


def check_only(parameters: Parameters) -> None:
    """Raise InvalidField if the query contains ``only`` without ``provider``."""
    if ONLY.name in parameters and "provider" not in parameters:
        raise InvalidField(Violation(ONLY.name, "is given without provider", "a provider beside it"))


def scope(snapshot: Snapshot, slot: int, parameters: Parameters) -> list[int]:
    """Return the slots of a provider and its descendants, or with ``only`` just the provider's slot."""
    return [slot] if ONLY.name in parameters else [*depth_first(snapshot, slot)]
