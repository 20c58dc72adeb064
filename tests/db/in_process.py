"""Services in this process, each on a given database."""

from __future__ import annotations

from placement import deploy
from placement.db.database import Database
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.policy import Policy
from tests import apis, caller, web

_CONF = web.configuration()
_POLICY = Policy(_CONF, [rule for api in apis.ALL for rule in api.rules])


def with_a_consumer(service: caller.Caller, host: str, consumer: str, project: str, user: str) -> caller.Caller:
    """Create a host and a consumer of one of its four CPUs; return the service."""
    assert service("POST", "/resource_providers", 39, {"name": "host", "uuid": host}).status == 200
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert service("PUT", f"/resource_providers/{host}/inventories", 39, stock).status == 200
    owner = {"project_id": project, "user_id": user, "consumer_generation": None, "consumer_type": "INSTANCE"}
    claim = {"allocations": {host: {"resources": {"VCPU": 1}}}, **owner}
    assert service("PUT", f"/allocations/{consumer}", 39, claim).status == 204
    return service


def service(database: Database, index: LiveIndex | None = None) -> Service:
    """Return a service on a database."""
    return Service(_CONF, database, _POLICY, index or LiveIndex(database), apis.ALL)


def caller_of(target: Service) -> caller.Caller:
    """Return a function that sends requests to the service with all its layers."""
    return caller.inside(deploy.assemble(target))


def placement(database: Database, index: LiveIndex | None = None) -> caller.Caller:
    """Return a function that sends requests to the service with all its layers."""
    return caller_of(service(database, index))
