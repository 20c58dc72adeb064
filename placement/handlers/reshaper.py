"""/reshaper"""

from __future__ import annotations

from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, no_content
from placement.objects.inventory import Inventory
from placement.objects.reshape import NewInventories, reshape
from placement.schemas import reshaper as schema
from placement.schemas.claim import claims, provider_uuids


@endpoint(
    since=mv.RESHAPER,
    policy="placement:reshaper:reshape",
    body=schema.CREATE,
    dry_run=lambda req: {*req.document["inventories"], *provider_uuids(req.document["allocations"])},
    limits={"inventories": lambda document: sum(len(body["inventories"]) for body in document["inventories"].values())},
    replies=schema.CREATE_REPLIES,
)
def create(req: Request) -> Reply:
    """Replace inventories of providers and allocations of consumers in one transaction."""
    inventories = {
        uuid: NewInventories(
            generation=body["resource_provider_generation"],
            records=[Inventory.of_body(name, record) for name, record in body["inventories"].items()],
        )
        for uuid, body in req.document["inventories"].items()
    }
    requested = claims(req.document["allocations"], req.conf.placement)
    req.write(lambda db: reshape(db, inventories, requested))
    return no_content()
