"""/traits, /traits/{name}, /resource_providers/{uuid}/traits"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placement import errors
from placement import microversion as mv
from placement.db.writes.transaction import Transaction
from placement.http import dry_run
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, created, newest_date, no_content, ok
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.trait import Trait
from placement.schemas import trait as schema


@endpoint(since=mv.TRAITS, policy="placement:traits:list", query=schema.LIST, replies=schema.LIST_REPLIES)
def list_traits(req: Request) -> Reply:
    """List the names of the traits that match every filter."""
    conditions = _name_filter(req.parameters.get("name")) | _association_filter(req.parameters.get("associated"))
    traits = req.read(lambda db: Trait.all(db, **conditions))
    return ok({"traits": [trait.name for trait in traits]}, modified=newest_date(trait.modified for trait in traits))


@endpoint(since=mv.TRAITS, policy="placement:traits:show", negotiates=False, replies=schema.SHOW_REPLIES)
def show(req: Request, name: str) -> Reply:
    """Return 204 if the trait exists; a trait has no data except its name."""
    trait = req.read(lambda db: Trait.get(db, name))
    return no_content(modified=trait.created_at or NOW)


def _check_name(_req: Request, name: str) -> None:
    """Raise InvalidTrait unless the path contains a valid name of a custom trait."""
    Trait.check_name(name)


@endpoint(since=mv.TRAITS, policy="placement:traits:update", check_path=_check_name, replies=schema.ENSURE_REPLIES)
def ensure(req: Request, name: str) -> Reply:
    """Create the custom trait unless it exists."""
    location = req.absolute_url(f"/traits/{name}")
    if req.write(lambda db: Trait.create(db, name)):
        return created(location, modified=NOW)
    trait = req.read(lambda db: Trait.find(db, name))
    return no_content(location, modified=trait.created_at if trait and trait.created_at else NOW)


@endpoint(since=mv.TRAITS, policy="placement:traits:delete", replies=schema.DELETE_REPLIES)
def delete(req: Request, name: str) -> Reply:
    """Delete a custom trait that no provider has."""
    req.write(lambda db: Trait.delete(db, name))
    return no_content()


@endpoint(since=mv.TRAITS, policy="placement:resource_providers:traits:list", replies=schema.OF_PROVIDER_REPLIES)
def of_provider(req: Request, uuid: str) -> Reply:
    """Show the traits of the provider."""
    return _present(*req.read(ResourceProvider.get_with, uuid, Trait.of_provider))


@endpoint(
    since=mv.TRAITS,
    policy="placement:resource_providers:traits:update",
    body=schema.REPLACE,
    limits={"traits": lambda document: len(document["traits"])},
    dry_run=dry_run.of_path,
    replies=schema.REPLACE_REPLIES,
)
def replace(req: Request, uuid: str) -> Reply:
    """Replace the traits of the provider."""
    document = req.document

    def work(db: Transaction) -> tuple[ResourceProvider, Iterable[Trait]]:
        generation = document["resource_provider_generation"]
        provider = LockedProvider.lock(db, uuid, generation, conflict=errors.ProviderGenerationMoved)
        provider.replace_traits(document["traits"])
        return provider.record, Trait.of_provider(db, provider.record)

    return _present(*req.write(work))


@endpoint(since=mv.TRAITS, policy="placement:resource_providers:traits:delete", replies=schema.CLEAR_REPLIES)
def clear(req: Request, uuid: str) -> Reply:
    """Remove all traits from the provider."""
    req.write(lambda db: LockedProvider.lock(db, uuid).replace_traits(()))
    return no_content()


def _name_filter(value: str | None) -> dict[str, Any]:
    """Return the filter of ``in:A,B`` or ``startswith:A``; other operators are ignored, as clients expect."""
    if value is None:
        return {}
    operator, colon, operand = value.partition(":")
    if not colon:
        raise errors.BadTraitName(value=value)
    if operator == "in":
        return {"names": operand.split(",")}
    return {"prefix": operand} if operator == "startswith" else {}


def _association_filter(value: str | None) -> dict[str, Any]:
    if value is None:
        return {}
    if value.lower() not in ("true", "false"):
        raise errors.BadTraitAssociation(value=value)
    return {"associated": value.lower() == "true"}


def _present(provider: ResourceProvider, traits: Iterable[Trait]) -> Reply:
    traits = [*traits]
    document = {
        "resource_provider_generation": provider.generation,
        "traits": [trait.name for trait in traits],
    }
    return ok(document, modified=newest_date(trait.modified for trait in traits))
