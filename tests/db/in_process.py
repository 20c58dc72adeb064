"""The service in this process, any number of times, each on a given database."""

from __future__ import annotations

from placement import deploy
from placement.db.database import Database
from placement.http.api import Deployment
from placement.index.live import LiveIndex
from placement.policy import Policy
from tests import caller, web

_CONF = web.configuration()
_POLICY = Policy(_CONF, [rule for api in deploy.APIS for rule in api.rules])


def placement(database: Database, index: LiveIndex | None = None) -> caller.Caller:
    """Calls the service with all its layers."""
    service = Deployment(_CONF, database, _POLICY, index or LiveIndex(database), deploy.APIS)
    return caller.inside(deploy.assemble(service))
