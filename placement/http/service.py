"""What all requests of a service share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oslo_config import cfg

from placement.db.database import Database
from placement.index.live import LiveIndex
from placement.policy import Policy

if TYPE_CHECKING:
    from placement.http.api import Api


@dataclass(frozen=True, slots=True)
class Service:
    """The configuration, and what layers and applications are made with.

    Nothing is global, so one interpreter can hold several services.
    """

    conf: cfg.ConfigOpts
    database: Database
    policy: Policy
    index: LiveIndex
    apis: tuple[Api, ...]

    @property
    def pages(self) -> str | None:
        """The path of the API that has pages for people; None if none has."""
        return next((f"{api.prefix}/" for api in self.apis if api.has_pages), None)
