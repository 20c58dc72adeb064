"""/v1/nodes, /v1/nodes/detail, /v1/nodes/{node}"""

from __future__ import annotations

import functools
import uuid as uuid_module
from collections.abc import Sequence
from typing import Any

from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal import access, versions
from placement.extensions.baremetal.endpoint import endpoint
from placement.extensions.baremetal.failures import UnknownDriver
from placement.extensions.baremetal.objects import node_page, node_update, states
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node, traits_of
from placement.extensions.baremetal.schemas import node as schema
from placement.extensions.baremetal.schemas import node_list
from placement.extensions.baremetal.schemas.node_document import NodePresentation
from placement.extensions.baremetal.schemas.node_fields import visible_fields
from placement.extensions.baremetal.schemas.query import Arguments
from placement.extensions.baremetal.schemas.reply import next_page
from placement.http.environ import CONTEXT
from placement.http.request import Request
from placement.http.response import Reply, created, no_content, ok
from placement.objects.consumer import Owner

#: A node with its traits.
NodeAndTraits = tuple[Node, list[str]]


@endpoint(policy="baremetal:node:list")
def list_nodes(req: Request) -> Reply:
    """List the nodes that match every filter, page by page."""
    arguments = Arguments(req.pairs(), node_list.LIST)
    return _list_nodes(req, "/v1/nodes", arguments, node_list.listed_fields(arguments, req.version))


@endpoint(policy="baremetal:node:list")
def list_details(req: Request) -> Reply:
    """List the nodes that match every filter with all their fields, page by page."""
    arguments = Arguments(req.pairs(), node_list.LIST_DETAIL)
    return _list_nodes(req, "/v1/nodes/detail", arguments, visible_fields(req.version))


@endpoint(policy="baremetal:node:create", body=schema.CREATE)
def create(req: Request) -> Reply:
    """Create a node and its resource provider with one unit of its class; adopt the provider if it exists."""
    Arguments(req.pairs())
    schema.check_visible(req.document, req.version)
    values = schema.without_defaults(schema.stored_form(req.document))
    _check_driver(req, values["driver"])
    uuid = values.pop("uuid", None) or str(uuid_module.uuid4())
    if req.version < versions.ENROLL:
        values["provision_state"] = states.AVAILABLE

    def work(db: Transaction) -> NodeAndTraits:
        return _with_traits(db, node_update.create(db, uuid, values, _caller(req)))

    document = _present(req, *req.write(work))
    return created(req.absolute_url(f"/v1/nodes/{uuid}"), document)


@endpoint(policy="baremetal:node:get", check_path=schema.check_ident)
def show(req: Request, node: str) -> Reply:
    """Show one node."""
    arguments = Arguments(req.pairs(), node_list.SHOW)

    def work(db: Reading) -> tuple[Node, list[str], Sequence[str]]:
        current = access.find_node(req, db, node, "baremetal:node:get")
        names = node_list.shown_fields(arguments, req.version, visible_fields(req.version))
        return current, traits_of(db, [current.uuid])[current.uuid] if "traits" in names else [], names

    return ok(_present(req, *req.read(work)))


@endpoint(policy="baremetal:node:update", check_path=schema.check_ident, body=schema.PATCH)
def update(req: Request, node: str) -> Reply:
    """Change a node by a JSON patch.  Writing ``instance_uuid`` allocates the node to that consumer."""
    Arguments(req.pairs())
    changes_of = schema.changes(req.document, req.version)

    def permitted_values(current: Node) -> dict[str, Any]:
        access.check_node(req, "baremetal:node:update", current, node)
        values = changes_of(current)
        if not values.keys().isdisjoint(("owner", "lessee")):
            access.check_node(req, "baremetal:node:update:owner", current)
        if "driver" in values:
            _check_driver(req, values["driver"])
        return values

    def work(db: Transaction) -> NodeAndTraits:
        current = access.find_node(req, db, node, "baremetal:node:update")
        return _with_traits(db, node_update.change(db, current, permitted_values, _caller(req)))

    return ok(_present(req, *req.write(work)))


@endpoint(policy="baremetal:node:delete", check_path=schema.check_ident)
def delete(req: Request, node: str) -> Reply:
    """Delete a node with its resource provider."""
    Arguments(req.pairs())

    def permit(current: Node) -> None:
        access.check_node(req, "baremetal:node:delete", current, node)

    def work(db: Transaction) -> None:
        node_update.delete(db, access.find_node(req, db, node, "baremetal:node:delete"), permit)

    req.write(work)
    return no_content()


def _list_nodes(req: Request, path: str, arguments: Arguments, names: Sequence[str]) -> Reply:
    paging = node_list.paging(arguments, req.version)
    node_filter = node_list.node_filter(arguments, access.project_of_nodes(req))
    columns, presentation = node_list.columns_of(names), NodePresentation(req, names)

    def work(db: Reading) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        rows = node_page.read(db, paging, columns, node_filter)
        return rows, traits_of(db, [row["uuid"] for row in rows]) if presentation.has_traits else {}

    rows, traits = req.read(work)
    last = rows[-1]["uuid"] if len(rows) == paging.limit else None
    document: dict[str, Any] = {"nodes": [presentation(row, traits.get(row["uuid"], [])) for row in rows]}
    if last is not None:
        filters, fields = arguments.values_of(node_list.REPEATED), arguments.fields(names)
        document["next"] = next_page(req, path, paging, last, fields=fields, filters=filters)
    return ok(document)


def _check_driver(req: Request, driver: str) -> None:
    if driver not in req.conf.baremetal.drivers:
        raise UnknownDriver(driver=driver)


def _caller(req: Request) -> node_update.Caller:
    """Return the caller.  Consumers created through ``instance_uuid`` belong to the project that owns the node."""
    options, context = req.conf.placement, req.environ[CONTEXT]

    def owner_of(project: str | None) -> Owner:
        return Owner(
            project or options.incomplete_consumer_project_id,
            context.user_id or options.incomplete_consumer_user_id,
            "INSTANCE",
        )

    return node_update.Caller(functools.partial(access.may_see, req), owner_of, access.may_use_any_consumer(req))


def _with_traits(db: Transaction, locked: LockedNode) -> NodeAndTraits:
    return locked.node, traits_of(db, [locked.node.uuid])[locked.node.uuid]


def _present(req: Request, node: Node, traits: list[str], names: Sequence[str] | None = None) -> dict[str, Any]:
    fields = visible_fields(req.version) if names is None else names
    return NodePresentation(req, fields).of_node(node, traits)
