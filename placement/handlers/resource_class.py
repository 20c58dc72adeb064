"""/resource_classes, /resource_classes/{name}"""

from __future__ import annotations

from typing import Any

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, created, newest_date, no_content, ok
from placement.objects.resource_class import CREATE_ATTEMPTS, ResourceClass
from placement.schemas import resource_class as schema


@endpoint(since=mv.RESOURCE_CLASSES, policy="placement:resource_classes:list", replies=schema.LIST_REPLIES)
def list_classes(req: Request) -> Reply:
    """List all classes, the standard classes first."""
    classes = req.read(ResourceClass.all)
    document = {"resource_classes": [_present(resource_class.name, req) for resource_class in classes]}
    return ok(document, modified=newest_date(resource_class.modified for resource_class in classes))


@endpoint(
    since=mv.RESOURCE_CLASSES,
    policy="placement:resource_classes:create",
    body=schema.CREATE,
    replies=schema.CREATE_REPLIES,
)
def create(req: Request) -> Reply:
    """Create a custom class."""
    name = req.document["name"]
    if not _create(req, name):
        raise errors.ResourceClassExists(name=name)
    return created(_location(req, name))


@endpoint(since=mv.RESOURCE_CLASSES, policy="placement:resource_classes:show", replies=schema.SHOW_REPLIES)
def show(req: Request, name: str) -> Reply:
    """Show a class."""
    resource_class = req.read(lambda db: ResourceClass.get(db, name))
    return ok(_present(name, req), modified=newest_date([resource_class.modified]))


@endpoint(
    since=mv.RESOURCE_CLASSES,
    until=mv.ENSURE_RESOURCE_CLASS,
    policy="placement:resource_classes:update",
    body=schema.CREATE,
    replies=schema.UPDATE_REPLIES,
)
def update(req: Request, name: str) -> Reply:
    """Rename a custom class."""
    new_name = req.document["name"]
    req.write(lambda db: ResourceClass.rename(db, name, new_name))
    return ok(_present(new_name, req))


def _check_name(req: Request, name: str) -> None:
    """Raise InvalidBody unless the path contains a valid name of a custom class."""
    schema.NAME.validate({"name": name}, req.version)


@endpoint(
    since=mv.ENSURE_RESOURCE_CLASS,
    policy="placement:resource_classes:update",
    check_path=_check_name,
    replies=schema.ENSURE_REPLIES,
)
def ensure(req: Request, name: str) -> Reply:
    """Create the custom class unless it exists; ignore any body."""
    location = _location(req, name)
    return created(location) if _create(req, name) else no_content(location)


@endpoint(since=mv.RESOURCE_CLASSES, policy="placement:resource_classes:delete", replies=schema.DELETE_REPLIES)
def delete(req: Request, name: str) -> Reply:
    """Delete a custom class without inventories."""
    req.write(lambda db: ResourceClass.delete(db, name))
    return no_content()


def _create(req: Request, name: str) -> bool:
    """Create the class unless it exists; return whether it was created."""
    return req.write(
        lambda db: ResourceClass.create(db, name),
        attempts=CREATE_ATTEMPTS,
        exhausted=errors.ResourceClassIdsContended,
    )


def _location(req: Request, name: str) -> str:
    return req.absolute_url(f"/resource_classes/{name}")


def _present(name: str, req: Request) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": f"{req.mount_path}/resource_classes/{name}"}]}
