"""/resource_providers/{uuid}/usages, /usages"""

from __future__ import annotations

from typing import Any

from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.objects.provider import ResourceProvider
from placement.objects.usage import Usage
from placement.schemas import usage as schema


@endpoint(policy="placement:resource_providers:usages", replies=schema.OF_PROVIDER_REPLIES)
def of_provider(req: Request, uuid: str) -> Reply:
    """Show the used amount of each class of the provider."""
    provider, usages = req.read(ResourceProvider.get_with, uuid, Usage.of_provider)
    return ok({"resource_provider_generation": provider.generation, "usages": usages}, modified=NOW)


def _project(req: Request) -> dict[str, Any]:
    """Return the project of the query as the target of the rule: readers may see the usages of their own project."""
    return {"project_id": req.unchecked_parameter("project_id")}


@endpoint(
    since=mv.USAGES, policy="placement:usages", target=_project, query=schema.LIST, replies=schema.OF_PROJECT_REPLIES
)
def of_project(req: Request) -> Reply:
    """Show the used amount of each class by a project, or by a user in it; since 1.38, by consumer type."""
    project, user = req.parameters.get("project_id"), req.parameters.get("user_id")
    if req.version < mv.CONSUMER_TYPES:
        return ok({"usages": req.read(lambda db: Usage.of_project(db, project, user))}, modified=NOW)
    consumer_type = req.parameters.get("consumer_type")
    # Two statements read amounts and counts; the snapshot keeps them consistent.
    by_type = req.database.snapshot(lambda db: Usage.by_type(db, project, user, consumer_type))
    usages = {name: {"consumer_count": usage.consumer_count, **usage.resources} for name, usage in by_type.items()}
    return ok({"usages": usages}, modified=NOW)
