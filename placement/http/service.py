"""The state that all requests of a service share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from oslo_config import cfg

from placement.db.database import Database
from placement.index.live import LiveIndex
from placement.policy import Policy

if TYPE_CHECKING:
    from placement.http.api import Api

Shared = TypeVar("Shared")


@dataclass(frozen=True, slots=True)
class Service:
    """The configuration, database, policy, index and APIs of the layers and applications.

    They are not global, so that one process can run several services.
    """

    conf: cfg.ConfigOpts
    database: Database
    policy: Policy
    index: LiveIndex
    apis: tuple[Api, ...]
    _shared: dict[object, Any] = field(default_factory=dict)

    def shared(self, factory: Callable[[cfg.ConfigOpts, Database, LiveIndex], Shared]) -> Shared:
        """Return the object that ``factory`` returned first; the requests of an extension share it."""
        instance: Shared = self._shared.get(factory) or self._shared.setdefault(
            factory, factory(self.conf, self.database, self.index)
        )
        return instance

    @property
    def pages(self) -> str | None:
        """The path of the first API with pages for people; None without such an API."""
        return next((f"{api.prefix}/" for api in self.apis if api.has_pages), None)
