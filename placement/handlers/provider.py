"""/resource_providers, /resource_providers/{uuid}"""

from __future__ import annotations

import uuid as uuid_module
from typing import Any

from placement import errors, filters
from placement import microversion as mv
from placement.db.engine import Transaction
from placement.endpoint import endpoint
from placement.objects import provider_list
from placement.objects.provider import ResourceProvider
from placement.reply import NOW, Reply, created, newest, no_content, ok
from placement.request import Request
from placement.schemas import provider as schema

_LINKS = (
    ("inventories", mv.INITIAL),
    ("usages", mv.INITIAL),
    ("aggregates", mv.AGGREGATES),
    ("traits", mv.TRAITS),
    ("allocations", mv.ALLOCATIONS_LINK),
)


@endpoint(policy="placement:resource_providers:list", query=schema.LIST)
def list(req: Request) -> Reply:
    """The providers that match every filter given."""
    wanted = _filter(req)
    with (
        errors.saying("Invalid resource class in resources parameter: ", errors.UnknownResourceClass),
        errors.saying('Invalid trait(s) in "required" parameter: ', errors.UnknownTraits),
    ):
        providers = req.read(lambda db: provider_list.matching(db, wanted))
    body = {"resource_providers": [_present(provider, req) for provider in providers]}
    return ok(body, modified=newest(provider.modified for provider in providers))


@endpoint(policy="placement:resource_providers:create", body=schema.CREATE)
def create(req: Request) -> Reply:
    """Make a provider, a root or the child of another."""
    body = req.body
    uuid = str(uuid_module.UUID(body["uuid"])) if "uuid" in body else str(uuid_module.uuid4())
    provider = req.write(
        lambda db: ResourceProvider.create(
            db, uuid=uuid, name=body["name"], parent_uuid=body.get("parent_provider_uuid")
        )
    )
    location = req.url(f"/resource_providers/{uuid}")
    if req.version >= mv.PROVIDER_BODY:
        return Reply(200, _present(provider, req), location, NOW)
    return created(location)


@endpoint(policy="placement:resource_providers:show")
def show(req: Request, uuid: str) -> Reply:
    """One provider."""
    provider = req.read(lambda db: ResourceProvider.get(db, uuid))
    return ok(_present(provider, req), modified=newest([provider.modified]))


@endpoint(policy="placement:resource_providers:update", body=schema.UPDATE)
def update(req: Request, uuid: str) -> Reply:
    """Rename a provider, and move it below another parent if one is named."""

    def work(db: Transaction) -> ResourceProvider:
        ResourceProvider.get(db, uuid)
        name = req.body["name"]
        if "parent_provider_uuid" not in req.body:
            return ResourceProvider.lock(db, uuid).rename(db, name)
        parent_uuid = req.body["parent_provider_uuid"]
        trees = ResourceProvider.lock_with_trees(db, [uuid, parent_uuid] if parent_uuid else [uuid])
        provider = trees.get(uuid) or ResourceProvider.lock(db, uuid)
        return provider.move(db, parent_uuid, trees, freely=req.version >= mv.REPARENTING).rename(db, name)

    provider = req.write(work)
    return ok(_present(provider, req), modified=newest([provider.modified]))


@endpoint(policy="placement:resource_providers:delete")
def delete(req: Request, uuid: str) -> Reply:
    """Remove a provider that has no children and no allocations."""
    req.write(lambda db: ResourceProvider.lock(db, uuid, errors.ProviderNotFoundForDelete).delete(db))
    return no_content()


def _filter(req: Request) -> provider_list.Filter:
    query = req.query
    traits = filters.traits(query.all("required"), req.version)
    membership = filters.membership(query.all("member_of"), req.version)
    return provider_list.Filter(
        name=query.get("name") or None,
        uuid=query.get("uuid"),
        in_tree=query.get("in_tree"),
        resources=filters.resources(query.get("resources")) if "resources" in query else {},
        required=traits.required,
        forbidden=traits.forbidden,
        member_of=membership.member_of,
        forbidden_aggregates=membership.forbidden,
    )


def _present(provider: ResourceProvider, req: Request) -> dict[str, Any]:
    """The provider as this version shows it."""
    path = f"{req.prefix}/resource_providers/{provider.uuid}"
    links = [{"rel": "self", "href": path}]
    links += [{"rel": rel, "href": f"{path}/{rel}"} for rel, since in _LINKS if req.version >= since]
    shown: dict[str, Any] = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": links,
    }
    if req.version >= mv.NESTED:
        shown |= {"parent_provider_uuid": provider.parent_uuid, "root_provider_uuid": provider.root_uuid}
    return shown
