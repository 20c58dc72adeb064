"""/traits, /traits/{name}, /resource_providers/{uuid}/traits"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placement import errors
from placement import microversion as mv
from placement.db.transaction import Transaction
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, created, newest, no_content, ok
from placement.objects.provider import ResourceProvider
from placement.objects.trait import Trait
from placement.schemas import trait as schema


@endpoint(since=mv.TRAITS, policy="placement:traits:list", query=schema.LIST)
def list(req: Request) -> Reply:
    """The names of all traits that match."""
    wanted = _named(req.query.get("name")) | _associated(req.query.get("associated"))
    traits = req.read(lambda db: Trait.all(db, **wanted))
    return ok({"traits": [trait.name for trait in traits]}, modified=newest(trait.modified for trait in traits))


@endpoint(since=mv.TRAITS, policy="placement:traits:show", negotiates=False)
def show(req: Request, name: str) -> Reply:
    """Whether there is such a trait: nothing more is to be told about it."""
    trait = req.read(lambda db: Trait.get(db, name))
    return no_content(modified=trait.created_at or NOW)


@endpoint(since=mv.TRAITS, policy="placement:traits:update")
def ensure(req: Request, name: str) -> Reply:
    """Make sure that the custom trait exists."""
    Trait.check_name(name)
    location = req.url(f"/traits/{name}")
    if req.write(lambda db: Trait.create(db, name)):
        return created(location, modified=NOW)
    trait = req.read(lambda db: Trait.find(db, name))
    return no_content(location, modified=trait.created_at if trait and trait.created_at else NOW)


@endpoint(since=mv.TRAITS, policy="placement:traits:delete")
def delete(req: Request, name: str) -> Reply:
    """Remove a custom trait that is on no provider."""
    req.write(lambda db: Trait.get(db, name).delete(db))
    return no_content()


@endpoint(since=mv.TRAITS, policy="placement:resource_providers:traits:list")
def of_provider(req: Request, uuid: str) -> Reply:
    """The traits of the provider."""

    def work(db: Any) -> tuple[ResourceProvider, Iterable[Trait]]:
        provider = ResourceProvider.get(db, uuid)
        return provider, Trait.of_provider(db, provider)

    return _present(*req.read(work))


@endpoint(since=mv.TRAITS, policy="placement:resource_providers:traits:update", body=schema.REPLACE)
def replace(req: Request, uuid: str) -> Reply:
    """Make these the traits of the provider."""
    body = req.body
    req.check_count("traits", len(body["traits"]))

    def work(db: Transaction) -> tuple[ResourceProvider, Iterable[Trait]]:
        provider = ResourceProvider.lock(db, uuid)
        provider.expect(body["resource_provider_generation"], errors.ProviderGenerationMoved)
        provider = Trait.replace(db, provider, body["traits"])
        return provider, Trait.of_provider(db, provider)

    return _present(*req.write(work))


@endpoint(since=mv.TRAITS, policy="placement:resource_providers:traits:delete")
def clear(req: Request, uuid: str) -> Reply:
    """Take all traits from the provider."""
    req.write(lambda db: Trait.replace(db, ResourceProvider.lock(db, uuid), ()))
    return no_content()


def _named(value: str | None) -> dict[str, Any]:
    """``in:A,B`` or ``startswith:A``; another operator does not filter, as clients of old know it."""
    if value is None:
        return {}
    operator, colon, operand = value.partition(":")
    if not colon:
        raise errors.BadTraitName(value=value)
    if operator == "in":
        return {"names": operand.split(",")}
    return {"prefix": operand} if operator == "startswith" else {}


def _associated(value: str | None) -> dict[str, Any]:
    if value is None:
        return {}
    if value.lower() not in ("true", "false"):
        raise errors.BadTraitAssociation(value=value)
    return {"associated": value.lower() == "true"}


def _present(provider: ResourceProvider, traits: Iterable[Trait]) -> Reply:
    traits = [*traits]
    body = {
        "resource_provider_generation": provider.generation,
        "traits": [trait.name for trait in traits],
    }
    return ok(body, modified=newest(trait.modified for trait in traits))
