"""What all requests of a service share."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from placement.db.database import Database
from placement.index.live import LiveIndex
from placement.policy import Policy


@dataclass(frozen=True, slots=True)
class Service:
    """The configuration and what was made of it.  Nothing is global, so one interpreter can hold several services."""

    conf: cfg.ConfigOpts
    database: Database
    policy: Policy
    index: LiveIndex

    @property
    def pages(self) -> str | None:
        """The path of pages for people; None if there are none."""
        return None
