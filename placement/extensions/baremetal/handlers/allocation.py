"""/v1/allocations, /v1/allocations/{allocation}, /v1/nodes/{node}/allocation"""

from __future__ import annotations

import uuid as uuid_module
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy.engine import Row

from placement import errors
from placement.db.schema.tables import utcnow
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal import access, signals, versions
from placement.extensions.baremetal.endpoint import endpoint
from placement.extensions.baremetal.failures import (
    AllocationNodeNotFound,
    CandidatesNotFound,
    NodeHasNoRecord,
    NodeNotFound,
    RecordNotFound,
    ResourceClassMissing,
)
from placement.extensions.baremetal.objects import placing, record_page
from placement.extensions.baremetal.objects.candidates import resolve
from placement.extensions.baremetal.objects.node import Node, json_differs
from placement.extensions.baremetal.objects.placing import NodeRequest
from placement.extensions.baremetal.objects.record import ALLOCATING, Record
from placement.extensions.baremetal.schemas import allocation as schema
from placement.extensions.baremetal.schemas import free_form, json_patch
from placement.extensions.baremetal.schemas.name import is_name
from placement.extensions.baremetal.schemas.query import Arguments
from placement.extensions.baremetal.schemas.reply import next_page
from placement.http.environ import CONTEXT
from placement.http.failures import MethodNotAllowed
from placement.http.request import Request
from placement.http.response import Reply, created, no_content, ok
from placement.objects.consumer import Owner
from placement.uuids import canonical, is_uuid

Result = TypeVar("Result")

_PATH = "/v1/allocations"
#: Type of consumers created by allocations.
_CONSUMER_TYPE = "BAREMETAL"


# --- refusals in older versions -------------------------------------------------------------------------------------


class AllocationsNotInVersion(errors.NotFound):
    template = "The API version does not allow allocations"


class AllocationsNotWritableInVersion(MethodNotAllowed):
    def __init__(self) -> None:
        super().__init__()
        self.sentence = "The API version does not allow allocations"


class UpdateNotInVersion(MethodNotAllowed):
    def __init__(self) -> None:
        super().__init__()
        self.sentence = "The API version does not allow updating allocations"


class OwnerNotInVersion(errors.NotAcceptable):
    template = "The API version does not allow the owner of allocations"


# --- the collection --------------------------------------------------------------------------------------------------


@endpoint(
    since=versions.ALLOCATIONS,
    gate=AllocationsNotWritableInVersion,
    policy="baremetal:allocation:create",
    body=schema.CREATE,
    limits={"traits": lambda document: len(document.get("traits") or ())},
)
def create(req: Request) -> Reply:
    """Allocate any node that fits, or record the allocation of a node in use.

    In the first case, the response shows the state ``allocating``, which clients expect, although the outcome is known.
    """
    Arguments(req.pairs())
    requested = _requested_record(req, req.document)
    owner = _consumer_owner(req, requested.owner)
    presentation = schema.Presentation(req)
    if req.document.get("node"):
        record = _write(req, lambda db: _backfill(req, db, requested, owner))
        signals.node_requested("backfilled", 0)
        return created(req.absolute_url(f"{_PATH}/{record.uuid}"), presentation(record))
    attempts = req.conf.placement.allocation_conflict_retry_count
    NodeRequest(req.database, req.index, requested, owner, attempts=attempts).place()
    return created(req.absolute_url(f"{_PATH}/{requested.uuid}"), presentation(requested, state=ALLOCATING))


def _requested_record(req: Request, document: dict[str, Any]) -> Record:
    """Return the validated request; its class is empty if the document names no class."""
    if "owner" in document and req.version < versions.ALLOCATION_OWNER:
        raise OwnerNotInVersion()
    owner = access.owner_of_new(req, document.get("owner") or None)
    name, uuid, traits = document.get("name"), document.get("uuid"), document.get("traits") or []
    if name is not None and not is_name(name):
        raise schema.InvalidName(verb="create", name=name)
    if not document.get("resource_class") and not document.get("node"):
        raise ResourceClassMissing()
    if uuid is not None and not is_uuid(uuid):
        raise schema.InvalidUuid(uuid=uuid)
    schema.check_traits(traits)
    extra = document.get("extra") or {}
    free_form.check("extra", extra)
    return Record(
        uuid=canonical(uuid or "") or str(uuid_module.uuid4()),
        name=name,
        resource_class=document.get("resource_class") or "",
        traits=traits,
        candidate_nodes=_candidates(req, document.get("candidate_nodes") or []),
        extra=extra,
        owner=owner,
        created_at=utcnow(),
    )


def _candidates(req: Request, idents: list[str]) -> list[str]:
    """Return the uuids of these nodes, in the same order, or raise CandidatesNotFound."""
    schema.check_count("candidate_nodes", len(idents), schema.MAX_CANDIDATES)
    for ident in idents:
        schema.check_ident(ident)
    if not idents:
        return []
    uuids = req.read(lambda db: resolve(db, idents, access.project_of_candidates(req)))
    missing = dict.fromkeys(ident for ident in idents if ident not in uuids)
    if missing:
        raise CandidatesNotFound(nodes=", ".join(missing))
    return [uuids[ident] for ident in idents]


def _consumer_owner(req: Request, owner: str | None) -> Owner:
    options = req.conf.placement
    project = owner or options.incomplete_consumer_project_id
    user = req.environ[CONTEXT].user_id or options.incomplete_consumer_user_id
    return Owner(project, user, _CONSUMER_TYPE)


def _backfill(req: Request, db: Transaction, requested: Record, owner: Owner) -> Record:
    ident = req.document["node"]
    schema.check_ident(ident)
    project = access.project_of_candidates(req)
    node = Node.find(db, ident)
    if node is None or (project is not None and project not in (node.owner, node.lessee)):
        raise AllocationNodeNotFound(node=ident)
    keep_holder, any_project = not req.document.get("uuid"), access.may_use_any_consumer(req)
    return placing.backfill(db, node, requested, owner, keep_holder=keep_holder, any_project=any_project)


@endpoint(since=versions.ALLOCATIONS, gate=AllocationsNotInVersion, policy="baremetal:allocation:list")
def list_allocations(req: Request) -> Reply:
    """List the allocations that match every filter, page by page."""
    arguments = Arguments(req.pairs(), schema.LIST)
    fields = arguments.fields(schema.fields(req.version))
    if "owner" in arguments and req.version < versions.ALLOCATION_OWNER:
        raise OwnerNotInVersion()
    paging = arguments.paging(record_page.SORT_KEYS)
    owner = access.owner_of_list(req, arguments.get("owner"))

    presentation = schema.Presentation(req, fields)

    def work(db: Reading) -> Sequence[Row[Any]]:
        return record_page.read(
            db,
            paging,
            presentation.columns,
            node_uuid=_node_uuid(req, db, arguments.get("node")),
            resource_class=arguments.get("resource_class"),
            state=arguments.get("state"),
            owner=owner,
            after=None if paging.marker is None else _marker(req, db, paging.marker),
        )

    records = req.read(work)
    document: dict[str, Any] = {"allocations": [presentation(record) for record in records]}
    if len(records) == paging.limit:
        filters = arguments.values_of(schema.FILTERS)
        document["next"] = next_page(req, _PATH, paging, records[-1].uuid, fields=fields, filters=filters)
    return ok(document)


def _node_uuid(req: Request, db: Reading, ident: str | None) -> str | None:
    """Return the uuid of the node; raise AllocationNodeNotFound if it does not exist or the caller may not see it."""
    if ident is None:
        return None
    schema.check_ident(ident)
    node = Node.get(db, ident, AllocationNodeNotFound)
    if not access.may_see(req, node):
        raise AllocationNodeNotFound(node=ident)
    return node.uuid


def _marker(req: Request, db: Reading, uuid: str) -> Record:
    """Return the record after which a page begins; raise RecordNotFound if it is missing or hidden from the caller."""
    record = Record.get(db, uuid)
    access.check_allocation(req, "baremetal:allocation:get", record, RecordNotFound(allocation=uuid))
    return record


# --- one allocation --------------------------------------------------------------------------------------------------


@endpoint(since=versions.ALLOCATIONS, gate=AllocationsNotInVersion, policy="baremetal:allocation:get")
def show(req: Request, allocation: str) -> Reply:
    """Show an allocation."""
    presentation = _presentation(req)
    schema.check_ident(allocation)
    record = req.read(lambda db: Record.get(db, allocation))
    access.check_allocation(req, "baremetal:allocation:get", record, RecordNotFound(allocation=allocation))
    return ok(presentation(record))


@endpoint(
    since=versions.UPDATE_ALLOCATIONS,
    gate=UpdateNotInVersion,
    policy="baremetal:allocation:update",
    body=schema.UPDATE,
)
def update(req: Request, allocation: str) -> Reply:
    """Change the name and extra of an allocation by a JSON patch."""
    Arguments(req.pairs())
    schema.check_ident(allocation)
    patch = json_patch.Patch(req.document, schema.UPDATABLE)

    def permit(record: Record) -> None:
        access.check_allocation(req, "baremetal:allocation:update", record, RecordNotFound(allocation=allocation))

    def work(db: Transaction) -> Record:
        record = Record.get(db, allocation)
        # Checked before locking, so that a caller cannot lock allocations of other projects, and afterwards, since
        # another allocation may have taken the uuid in between.
        permit(record)
        record = Record.lock(db, record.uuid)
        permit(record)
        return _update_record(db, record, patch)

    return ok(schema.Presentation(req)(_write(req, work)))


def _update_record(db: Transaction, record: Record, patch: json_patch.Patch) -> Record:
    changed = patch.apply({"name": record.name, "extra": record.extra})
    name, extra = changed.get("name"), changed.get("extra")
    if name is not None and not (isinstance(name, str) and is_name(name)):
        raise schema.InvalidName(verb="update", name=name)
    if extra is None:
        extra = {}
    if not isinstance(extra, dict):
        raise schema.InvalidExtra()
    changes = json_differs([name, extra], [record.name, record.extra])
    return record.update(db, name=name, extra=extra) if changes else record


@endpoint(since=versions.ALLOCATIONS, gate=AllocationsNotWritableInVersion, policy="baremetal:allocation:delete")
def delete(req: Request, allocation: str) -> Reply:
    """Delete an allocation and release its node."""
    Arguments(req.pairs())
    schema.check_ident(allocation)

    def work(db: Transaction) -> None:
        record = Record.get(db, allocation)
        access.check_allocation(req, "baremetal:allocation:delete", record, RecordNotFound(allocation=allocation))
        placing.end(db, record)

    _write(req, work)
    return no_content()


# --- the allocation of a node ----------------------------------------------------------------------------------------


@endpoint(since=versions.ALLOCATIONS, policy="baremetal:allocation:get")
def show_of_node(req: Request, node: str) -> Reply:
    """Show the allocation of a node.  As in the filter of the list, a missing node is a bad request."""
    presentation = _presentation(req)
    schema.check_ident(node)
    record = req.read(lambda db: _record_of(req, db, node, "baremetal:allocation:get", AllocationNodeNotFound))
    return ok(presentation(record))


@endpoint(since=versions.ALLOCATIONS, policy="baremetal:allocation:delete")
def delete_of_node(req: Request, node: str) -> Reply:
    """Delete the allocation of a node and release the node."""
    Arguments(req.pairs())
    schema.check_ident(node)

    def work(db: Transaction) -> None:
        placing.end(db, _record_of(req, db, node, "baremetal:allocation:delete", NodeNotFound))

    _write(req, work)
    return no_content()


def _presentation(req: Request) -> schema.Presentation:
    """Return the presentation of an allocation with the fields in the query."""
    return schema.Presentation(req, Arguments(req.pairs(), ("fields",)).fields(schema.fields(req.version)))


def _record_of(req: Request, db: Reading, ident: str, rule: str, missing: type[errors.Failure]) -> Record:
    """Return the allocation of the node if ``rule`` allows the caller to act on it.

    Raises:
        Failure: ``missing``, if the caller may see neither the node nor its allocation.
        NodeHasNoRecord: The node has no allocation, or the caller may see only the node.
        Forbidden: The caller may see the allocation, but ``rule`` refuses the action.
    """
    node = Node.get(db, ident, missing)
    failure = NodeHasNoRecord(node=ident) if access.may_see(req, node) else missing(node=ident)
    try:
        record = Record.of_node(db, node.uuid)
    except NodeHasNoRecord:
        raise failure from None
    access.check_allocation(req, rule, record, failure)
    return record


def _write(req: Request, work: Callable[[Transaction], Result]) -> Result:
    attempts = req.conf.placement.allocation_conflict_retry_count
    return req.write(work, attempts=attempts, exhausted=errors.AllocationsChanged)
