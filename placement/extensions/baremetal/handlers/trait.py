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
    """Show the traits of a node, which are the traits of its resource provider."""
    Arguments(req.pairs())

    def work(db: Reading) -> list[str]:
        current = access.find_node(req, db, node, "baremetal:node:traits:list")
        return traits_of(db, [current.uuid])[current.uuid]

    return ok({"traits": req.read(work)})


@endpoint(
    since=versions.TRAITS,
    gate=MethodNotAllowed,
    policy="baremetal:node:traits:set",
    check_path=check_ident,
    body=schema.TRAITS,
)
def replace(req: Request, node: str) -> Reply:
    """Replace the traits of a node."""
    Arguments(req.pairs())
    names = set(req.document["traits"])
    _change(req, node, "baremetal:node:traits:set", lambda _node, _traits: names)
    return no_content()


@endpoint(
    since=versions.TRAITS,
    gate=MethodNotAllowed,
    policy="baremetal:node:traits:set",
    check_path=check_ident,
    body=schema.ONE_TRAIT,
)
def add(req: Request, node: str, trait: str) -> Reply:
    """Add a trait to a node."""
    Arguments(req.pairs())
    _change(req, node, "baremetal:node:traits:set", lambda _node, traits: traits | {trait})
    return no_content(req.absolute_url(f"/v1/nodes/{node}/traits/{trait}"))


@endpoint(since=versions.TRAITS, policy="baremetal:node:traits:delete", check_path=check_ident)
def clear(req: Request, node: str) -> Reply:
    """Remove all traits of a node."""
    Arguments(req.pairs())
    _change(req, node, "baremetal:node:traits:delete", lambda _node, _traits: set())
    return no_content()


@endpoint(since=versions.TRAITS, policy="baremetal:node:traits:delete", check_path=check_ident)
def remove(req: Request, node: str, trait: str) -> Reply:
    """Remove a trait of a node."""
    Arguments(req.pairs())

    def remaining_traits(target: Node, traits: set[str]) -> set[str]:
        if trait not in traits:
            raise NodeHasNoTrait(node=target.uuid, trait=trait)
        return traits - {trait}

    _change(req, node, "baremetal:node:traits:delete", remaining_traits)
    return no_content()


def _change(req: Request, ident: str, rule: str, change: Callable[[Node, set[str]], set[str]]) -> None:
    """Replace the traits of a node by the result of ``change(node, traits)``, called under the lock of the node."""

    def work(db: Transaction) -> None:
        locked = access.lock_node(req, db, ident, rule)
        node = locked.node
        traits = {*traits_of(db, [node.uuid])[node.uuid]}
        new_traits = change(node, traits)
        # A Placement client may have added more; the excess can be removed here.
        if len(new_traits) > schema.MAX_TRAITS and new_traits - traits:
            raise TooManyTraits(node=node.uuid, count=len(new_traits), maximum=schema.MAX_TRAITS)
        locked.replace_traits(new_traits)

    req.write(work)
