"""Endpoints: handlers with the declaration of the checks that run before them.

    @endpoint(
        since=mv.AGGREGATES,
        policy="placement:resource_providers:aggregates:update",
        body=schema.REPLACE,
        find_first=ResourceProvider.get,
    )
    def replace(req, uuid):
        ...

The checks run in this order (docs: api-order-of-checks): version gate, Accept, Content-Type, policy, dry run, path
values, query, body and its limits.  A handler therefore receives valid input, and a malformed request takes no locks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from wsgiref.types import WSGIEnvironment

from webob.acceptparse import create_accept_header

from placement import errors
from placement.db.upkeep import standard
from placement.http import body, failures
from placement.http import dry_run as dry_runs
from placement.http.environ import API, CONTEXT, ROUTE
from placement.http.request import Request
from placement.http.response import JSON, Reply
from placement.schemas.declarations import Object, SchemaType
from placement.schemas.document import Body, Parameters, Query
from placement.schemas.success import Replies
from placement.version_history import OLDEST, Version

Handler = Callable[..., Reply]
Target = Callable[[Request], Mapping[str, Any]]

_NO_PARAMETERS = Query(Object())


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A handler with its declaration.  Calling it runs the checks, then the handler, with the same arguments.

    Attributes:
        handler: The function ``(req, **path values) -> Reply``.
        since: The first version that supports the endpoint.
        until: The first version without the endpoint; the route table then lists the endpoint's successor.
        policy: The rule that the caller must satisfy; None for no rule.
        target: A function that returns the target of the rule; None for the caller's own project and user.
        check_path: A function of the handler's arguments that raises a Failure for invalid path values.
        query: The schema of the query; None for an endpoint without parameters, which the API ignores or refuses.
        body: The schema of the JSON body; None reads no body and requires no Content-Type.
        limits: For each kind of entry, a function that counts the entries of the document.  The option
            ``max_<kind>_per_request`` is the limit.
        find_first: A function of the database and the path values that reads the object named by the path.  It runs
            only if the body is refused, so that a missing object is reported (404) before an invalid body.
        dry_run: A function of the handler's arguments that returns the uuids of the providers whose capacity a dry run
            shows besides changed providers (docs: api-dry-run).  The handler must write with ``req.write``.  None for
            an endpoint without dry runs.
        negotiates: Whether a GET is refused if the client accepts neither JSON nor one of ``other_types``.
        other_types: Media types besides JSON in which a GET can respond.
        gate: The failure raised for versions before ``since``; takes no arguments.
        media_types_first: Whether Accept and Content-Type are checked before the version gate.
        replies: The successful responses, for the OpenAPI document only.
        may_be_gone: Whether the endpoint may respond with 410, for the OpenAPI document only.
        conflict: The schema of additional members of a 409 error document, for the OpenAPI document only.
    """

    handler: Handler
    since: Version = OLDEST
    until: Version | None = None
    policy: str | None = None
    target: Target | None = None
    check_path: Callable[..., object] | None = None
    query: Query | None = None
    body: Body | None = None
    limits: Mapping[str, Callable[[Any], int]] = field(default_factory=dict)
    find_first: Callable[..., object] | None = None
    dry_run: Callable[..., Collection[str]] | None = None
    negotiates: bool = True
    other_types: tuple[str, ...] = ()
    gate: type[errors.Failure] = failures.NoSuchRoute
    media_types_first: bool = False
    replies: Replies = ()
    may_be_gone: bool = False
    conflict: SchemaType | None = None

    def __call__(self, req: Request, **path_values: str) -> Reply:
        """Return the handler's response, after all checks.

        Raises:
            Failure: A check or the handler failed.
        """
        self._check_access(req)
        is_dry_run = req.environ["REQUEST_METHOD"] != "GET" and self._mark_dry_run(req.environ)
        if self.check_path is not None:
            self.check_path(req, **path_values)
        query = _NO_PARAMETERS if self.query is None and req.environ[API].strict_queries else self.query
        if query is not None:
            req.parameters = self._parameters(req, query)
        if self.body is not None:
            req.document = self._document(req, self.body, path_values)
        if is_dry_run:
            return self._run_dry(req, path_values)
        return self._run(req, path_values)

    def _run(self, req: Request, path_values: dict[str, str]) -> Reply:
        try:
            return self.handler(req, **path_values)
        except errors.Failure as failure:
            if not standard.repair(req.writes_to, failure):
                raise
        return self.handler(req, **path_values)

    def _run_dry(self, req: Request, path_values: dict[str, str]) -> Reply:
        provider_uuids = self.dry_run(req, **path_values) if self.dry_run else ()
        req.dry_run = dry_runs.start(req.database, provider_uuids)
        return dry_runs.respond(req.dry_run, functools.partial(self._run, req, path_values), req.environ)

    def _check_access(self, req: Request) -> None:
        """Check version, media types and policy."""
        if self.media_types_first:
            self._check_media_types(req)
        if req.version < self.since:
            raise self.gate()
        if not self.media_types_first:
            self._check_media_types(req)
        if self.policy is not None:
            target = self.target(req) if self.target else None
            req.service.policy.authorize(self.policy, req.environ[CONTEXT], target)

    def _check_media_types(self, req: Request) -> None:
        environ = req.environ
        accept = environ.get("HTTP_ACCEPT")
        if self.negotiates and accept != JSON and environ["REQUEST_METHOD"] == "GET":
            preferred_type(accept, self.other_types)
        if self.body is not None and environ[API].strict_bodies:
            content_type = media_type(environ.get("CONTENT_TYPE"))
            if content_type is None or content_type.lower() != JSON:
                raise failures.UnsupportedMediaType(type=content_type)

    def _mark_dry_run(self, environ: WSGIEnvironment) -> bool:
        """Mark the route in the environ if the request is a dry run, which is not a write; return whether it is.

        Raises:
            InvalidDryRun: The parameter or the header is malformed.
            NoDryRun: The endpoint does not support dry runs.
        """
        if not dry_runs.is_requested(environ):
            return False
        if self.dry_run is None:
            raise failures.NoDryRun()
        environ[ROUTE] += "?dry_run=true"
        return True

    def _parameters(self, req: Request, schema: Query) -> Parameters:
        pairs = req.pairs()
        if self.dry_run is not None:
            # Every write accepts the parameter, but no schema declares it.
            pairs = [(name, value) for name, value in pairs if name != dry_runs.PARAMETER]
        return schema.validate(pairs, req.version, strict=req.environ[API].strict_queries)

    def _document(self, req: Request, schema: Body, path_values: dict[str, str]) -> Any:
        options = req.conf.api
        try:
            content = body.read(req.environ, options.max_request_body_size)
            if content or req.environ[API].strict_bodies:
                value = body.parse_json(content, options.max_request_body_values)
            else:
                value = {}
            document = schema.validate(value, req.version)
            for kind, count in self.limits.items():
                check_count(kind, count(document), req.conf.placement[f"max_{kind}_per_request"])
        except errors.Failure:
            if self.find_first is not None:
                req.read(self.find_first, **path_values)
            raise
        return document


def endpoint(**declaration: Any) -> Callable[[Handler], Endpoint]:
    """Return a decorator that turns a handler ``(req, **path values) -> Reply`` into an ``Endpoint``.

    Args:
        declaration: The fields of Endpoint, by name.
    """
    return lambda handler: Endpoint(handler=handler, **declaration)


def check_count(kind: str, count: int, limit: int) -> None:
    """Raise TooManyEntries if a request has more than ``limit`` entries of a kind."""
    if count > limit:
        raise errors.TooManyEntries(kind=kind, count=count, limit=limit)


def preferred_type(accept: str | None, other_types: tuple[str, ...] = ()) -> str:
    """Return the media type that an Accept header prefers; JSON without the header.

    Args:
        accept: The Accept header.
        other_types: The types offered besides JSON.

    Raises:
        OnlyJSON: The client accepts none of the types offered.
    """
    if accept == JSON:
        return JSON
    offers = create_accept_header(accept).acceptable_offers([JSON, *other_types])
    if not offers:
        raise failures.OnlyJSON()
    preferred: str = offers[0][0]
    return preferred


def media_type(content_type: str | None) -> str | None:
    """Return the media type of a Content-Type header, without parameters; None if it is empty."""
    return (content_type or "").partition(";")[0].strip() or None
