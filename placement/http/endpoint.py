"""An endpoint: a handler, and a declaration of all that is checked before it runs.

    @endpoint(
        since=mv.AGGREGATES,
        policy="placement:resource_providers:aggregates:update",
        body=schema.REPLACE,
        find_first=ResourceProvider.get,
    )
    def replace(req, uuid):
        ...

The checks run in this order (docs: api-order-of-checks): the version gate, Accept, Content-Type, the policy, the values
in the path, the query, the body with its limits.  So a handler begins with everything valid, and no lock is taken for a
request that is malformed.
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
    """A handler with its declaration.  Called as the handler is, with the checks before.

    Args:
        since: The first version that has the endpoint.
        until: The first version that has it no more; the route table then names the endpoint that follows.
        policy: The rule that the caller must satisfy; None for no rule.
        target: Returns what the rule is asked about; None for the caller's own project and user.
        check_path: Judges the values in the path; called as the handler is, and raises a Failure.
        query: The schema of the query; None for no parameters, which the API then ignores or refuses.
        body: The schema of the JSON body; None reads no body, and asks for no Content-Type.
        limits: For each kind of entries, how many the document has.  ``max_<kind>_per_request`` is the option with
            the limit.
        find_first: Reads what the path names, called with the database and the values in the path.  It runs only if
            the body is refused: where what the path names is missing, its 404 goes before the refusal of the body.
        dry_run: Returns the uuids of the providers whose room a dry run shows (docs: api-dry-run), beside those that
            change; called as the handler is, which must write by ``req.write``.  None for an endpoint without dry runs.
        negotiates: Whether a GET is refused unless the client accepts JSON, or another type that the endpoint has.
        other_types: Media types beside JSON that a GET may be answered in.
        gate: The failure that refuses an older version; it takes no values.
        media_types_first: Whether the checks of Accept and Content-Type come before the version gate.
        replies: What it returns where it succeeds, for the OpenAPI document; no check depends on it.
        may_be_gone: Whether what the query names may be no more (410), for the same.
        conflict: What its error documents of status 409 may have beside their errors, for the same.
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
        """Return the reply of the handler, after all checks.

        Raises:
            Failure: The first check that fails, or the handler's.
        """
        self._check_access(req)
        is_dry_run = req.environ["REQUEST_METHOD"] != "GET" and self._is_dry_run(req.environ)
        if self.check_path is not None:
            self.check_path(req, **path_values)
        query = _NO_PARAMETERS if self.query is None and req.environ[API].strict_queries else self.query
        if query is not None:
            req.parameters = self._parameters(req, query)
        if self.body is not None:
            req.document = self._document(req, self.body, path_values)
        if is_dry_run:
            return self._answer_dry_run(req, path_values)
        return self._answer(req, path_values)

    def _answer(self, req: Request, path_values: dict[str, str]) -> Reply:
        try:
            return self.handler(req, **path_values)
        except errors.Failure as failure:
            if not standard.repair(req.writes_to, failure):
                raise
        return self.handler(req, **path_values)

    def _answer_dry_run(self, req: Request, path_values: dict[str, str]) -> Reply:
        named = self.dry_run(req, **path_values) if self.dry_run else ()
        req.dry_run = dry_runs.begun(req.database, named)
        return dry_runs.answer(req.dry_run, functools.partial(self._answer, req, path_values), req.environ)

    def _check_access(self, req: Request) -> None:
        """Check what can be judged without the content of the request."""
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
            given = media_type(environ.get("CONTENT_TYPE"))
            if given is None or given.lower() != JSON:
                raise failures.UnsupportedMediaType(type=given)

    def _is_dry_run(self, environ: WSGIEnvironment) -> bool:
        """Return whether the request is a dry run; its route is marked, because it is no write.

        Raises:
            InvalidDryRun: The request does not say whether it is.
            NoDryRun: This endpoint would change something all the same.
        """
        if not dry_runs.is_asked(environ):
            return False
        if self.dry_run is None:
            raise failures.NoDryRun()
        environ[ROUTE] += "?dry_run=true"
        return True

    def _parameters(self, req: Request, schema: Query) -> Parameters:
        pairs = req.pairs()
        if self.dry_run is not None:
            # It is a parameter of every write, and of no schema.
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
    """Return a decorator that makes an ``Endpoint`` of a handler ``(req, **path values) -> Reply``.

    Args:
        declaration: The fields of Endpoint, by name.
    """
    return lambda handler: Endpoint(handler=handler, **declaration)


def check_count(kind: str, count: int, most: int) -> None:
    """Refuse a request with too many entries of a kind.

    Raises:
        TooManyEntries: There are more than ``most``.
    """
    if count > most:
        raise errors.TooManyEntries(kind=kind, count=count, most=most)


def preferred_type(accept: str | None, others: tuple[str, ...] = ()) -> str:
    """Return the media type that a client with this Accept header prefers; JSON to one without the header.

    Args:
        others: The types that can be had beside JSON.

    Raises:
        OnlyJSON: It takes none of them.
    """
    if accept == JSON:
        return JSON
    offers = create_accept_header(accept).acceptable_offers([JSON, *others])
    if not offers:
        raise failures.OnlyJSON()
    preferred: str = offers[0][0]
    return preferred


def media_type(content_type: str | None) -> str | None:
    """Return the type without its parameters."""
    return (content_type or "").partition(";")[0].strip() or None
