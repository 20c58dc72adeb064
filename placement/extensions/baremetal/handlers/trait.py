"""/v1/nodes/{node}/traits, /v1/nodes/{node}/traits/{trait}"""

from __future__ import annotations

from collections.abc import Callable

from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal import access, versions
from placement.extensions.baremetal.endpoint import endpoint
from placement.extensions.baremetal.failures import NodeHasNoTrait, NotInThisVersion, TooManyTraits
from placement.extensions.baremetal.objects.node import Node, traits_of
from placement.extensions.baremetal.schemas import node as schema
from placement.extensions.baremetal.schemas.node import check_ident
from placement.extensions.baremetal.schemas.query import Arguments
from placement.http.failures import MethodNotAllowed
from placement.http.request import Request
from placement.http.response import Reply, no_content, ok


@endpoint(since=versions.TRAITS, gate=NotInThisVersion, policy="baremetal:node:traits:list", check_path=check_ident)
def list_traits(req: Request, node: str) -> Reply:
    """Show the traits of a node, which are those of its resource provider."""
    Arguments(req.pairs())

    def work(db: Reading) -> list[str]:
        found = access.find_node(req, db, node, "baremetal:node:traits:list")
        return traits_of(db, [found.uuid])[found.uuid]

    return ok({"traits": req.read(work)})


@endpoint(
    since=versions.TRAITS,
    gate=MethodNotAllowed,
    policy="baremetal:node:traits:set",
    check_path=check_ident,
    body=schema.TRAITS,
)
def replace(req: Request, node: str) -> Reply:
    """Give a node exactly these traits."""
    Arguments(req.pairs())
    names = set(req.document["traits"])
    _change(req, node, "baremetal:node:traits:set", lambda _node, _present: names)
    return no_content()


@endpoint(
    since=versions.TRAITS,
    gate=MethodNotAllowed,
    policy="baremetal:node:traits:set",
    check_path=check_ident,
    body=schema.ONE_TRAIT,
)
def add(req: Request, node: str, trait: str) -> Reply:
    """Give a node one more trait."""
    Arguments(req.pairs())
    _change(req, node, "baremetal:node:traits:set", lambda _node, present: present | {trait})
    return no_content(req.absolute_url(f"/v1/nodes/{node}/traits/{trait}"))


@endpoint(since=versions.TRAITS, policy="baremetal:node:traits:delete", check_path=check_ident)
def clear(req: Request, node: str) -> Reply:
    """Take all traits from a node."""
    Arguments(req.pairs())
    _change(req, node, "baremetal:node:traits:delete", lambda _node, _present: set())
    return no_content()


@endpoint(since=versions.TRAITS, policy="baremetal:node:traits:delete", check_path=check_ident)
def remove(req: Request, node: str, trait: str) -> Reply:
    """Take one trait from a node."""
    Arguments(req.pairs())

    def without(found: Node, present: set[str]) -> set[str]:
        if trait not in present:
            raise NodeHasNoTrait(node=found.uuid, trait=trait)
        return present - {trait}

    _change(req, node, "baremetal:node:traits:delete", without)
    return no_content()


def _change(req: Request, ident: str, rule: str, changed: Callable[[Node, set[str]], set[str]]) -> None:
    """Replace the traits of a node by what ``changed`` returns for the node and its traits, under its lock."""

    def work(db: Transaction) -> None:
        locked = access.lock_node(req, db, ident, rule)
        found = locked.node
        present = {*traits_of(db, [found.uuid])[found.uuid]}
        wanted = changed(found, present)
        # A Placement client can give the provider more, which can be removed.
        if len(wanted) > schema.MAX_TRAITS and wanted - present:
            raise TooManyTraits(node=found.uuid, count=len(wanted), most=schema.MAX_TRAITS)
        locked.replace_traits(wanted)

    req.write(work)
