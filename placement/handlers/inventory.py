"""/resource_providers/{uuid}/inventories, /resource_providers/{uuid}/inventories/{resource_class}"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placement import errors
from placement import microversion as mv
from placement.db.writes.transaction import Transaction
from placement.http import dry_run
from placement.http.endpoint import endpoint
from placement.http.failures import MethodNotAllowed
from placement.http.request import Request
from placement.http.response import NOW, UNDATED, Reply, created, newest_date, no_content, ok
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.schemas import inventory as schema


@endpoint(policy="placement:resource_providers:inventories:list", replies=schema.LIST_REPLIES)
def list_inventories(req: Request, uuid: str) -> Reply:
    """Show the inventories of the provider."""
    return _present_all(*req.read(ResourceProvider.get_with, uuid, Inventory.of_provider))


@endpoint(
    policy="placement:resource_providers:inventories:create",
    body=schema.CREATE,
    find_first=ResourceProvider.get,
    dry_run=dry_run.of_path,
    replies=schema.CREATE_REPLIES,
)
def create(req: Request, uuid: str) -> Reply:
    """Add an inventory of one class to the provider."""

    def work(db: Transaction) -> tuple[ResourceProvider, Inventory]:
        provider = LockedProvider.lock(db, uuid)
        record = Inventory.of_body(req.document["resource_class"], req.document)
        with errors.prefix_failures(f"Unable to create inventory for resource provider {uuid}: "):
            _check(req, uuid, [record])
        with errors.prefix_failures(
            f"Unable to create inventory for resource provider {uuid}: ", errors.UnknownResourceClass
        ):
            provider.add_inventory(record)
        return provider.record, record

    provider, record = req.write(work)
    location = req.absolute_url(f"/resource_providers/{uuid}/inventories/{record.resource_class}")
    return created(location, _present(provider, record), NOW)


@endpoint(
    policy="placement:resource_providers:inventories:update",
    body=schema.REPLACE,
    limits={"inventories": lambda document: len(document["inventories"])},
    find_first=ResourceProvider.get,
    dry_run=dry_run.of_path,
    replies=schema.REPLACE_REPLIES,
)
def replace(req: Request, uuid: str) -> Reply:
    """Replace the inventories of the provider."""

    def work(db: Transaction) -> tuple[ResourceProvider, Iterable[Inventory]]:
        provider = LockedProvider.lock(db, uuid, req.document["resource_provider_generation"])
        records = [Inventory.of_body(name, body) for name, body in req.document["inventories"].items()]
        with errors.prefix_failures(f"Unable to update inventory for resource provider {uuid}: "):
            _check(req, uuid, records)
        prefix = f"Unknown resource class in inventory for resource provider {uuid}: "
        with (
            errors.prefix_failures(prefix, errors.UnknownResourceClass),
            errors.prefix_failures("update conflict: ", errors.InventoryInUse),
        ):
            provider.replace_inventories(records)
        return provider.record, records

    provider, records = req.write(work)
    return _present_all(provider, records)


@endpoint(
    since=mv.DELETE_INVENTORIES,
    gate=MethodNotAllowed,
    policy="placement:resource_providers:inventories:delete",
    replies=schema.DELETE_ALL_REPLIES,
)
def delete_all(req: Request, uuid: str) -> Reply:
    """Delete the inventories of the provider."""
    req.write(lambda db: LockedProvider.lock(db, uuid).replace_inventories([]))
    return no_content()


@endpoint(policy="placement:resource_providers:inventories:show", replies=schema.SHOW_REPLIES)
def show(req: Request, uuid: str, resource_class: str) -> Reply:
    """Show the provider's inventory of one class."""
    provider, record = req.read(
        ResourceProvider.get_with, uuid, lambda db, provider: Inventory.get(db, provider, resource_class)
    )
    return ok(_present(provider, record), modified=newest_date([record.modified]))


@endpoint(
    policy="placement:resource_providers:inventories:update",
    body=schema.UPDATE,
    find_first=lambda db, uuid, resource_class: ResourceProvider.get(db, uuid),  # noqa: ARG005
    dry_run=dry_run.of_path,
    replies=schema.UPDATE_REPLIES,
)
def update(req: Request, uuid: str, resource_class: str) -> Reply:
    """Change the provider's inventory of one class."""

    def work(db: Transaction) -> tuple[ResourceProvider, Inventory]:
        provider = LockedProvider.lock(db, uuid, req.document["resource_provider_generation"])
        record = Inventory.of_body(resource_class, req.document)
        with errors.prefix_failures(f"Unable to update inventory for resource provider {uuid}: "):
            _check(req, uuid, [record])
        provider.update_inventory(record)
        return provider.record, record

    provider, record = req.write(work)
    return ok(_present(provider, record), modified=NOW)


@endpoint(policy="placement:resource_providers:inventories:delete", replies=schema.DELETE_REPLIES)
def delete(req: Request, uuid: str, resource_class: str) -> Reply:
    """Delete the provider's inventory of one class."""
    req.write(lambda db: LockedProvider.lock(db, uuid).remove_inventory(resource_class))
    return no_content()


def _check(req: Request, uuid: str, records: Iterable[Inventory]) -> None:
    Inventory.check_capacity(uuid, records, may_be_full=req.version >= mv.RESERVED_EQUALS_TOTAL)


def _present_all(provider: ResourceProvider, records: Iterable[Inventory]) -> Reply:
    inventories = {record.resource_class: record.columns for record in records}
    document = {"resource_provider_generation": provider.generation, "inventories": inventories}
    return ok(document, modified=newest_date(record.modified for record in records) if inventories else UNDATED)


def _present(provider: ResourceProvider, record: Inventory) -> dict[str, Any]:
    return {"resource_provider_generation": provider.generation, **record.columns}
