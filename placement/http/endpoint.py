"""An endpoint: a handler, and a declaration of all that is checked before it runs.

    @endpoint(
        since=mv.AGGREGATES,
        policy="placement:resource_providers:aggregates:update",
        body=schema.REPLACE,
        lookup=ResourceProvider.get,
    )
    def replace(req, uuid):
        ...

The checks run in this order (docs: api-order-of-checks): the version gate, Accept, Content-Type, the policy, the values
in the path, the query, the body with its limits.  So a handler begins with everything valid, and no lock is taken for a
request that is malformed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from webob.acceptparse import create_accept_header

from placement import errors
from placement.db import standard
from placement.http import body, failures
from placement.http.request import Request
from placement.http.response import JSON, Reply
from placement.schemas.document import Body, Query
from placement.version_history import OLDEST, Version

Handler = Callable[..., Reply]
Target = Callable[[Request], Mapping[str, Any]]
Gate = Literal["path", "method", "after media types"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A handler with its declaration.  Called as the handler is, with the checks before.

    Args:
        since: The first version that has the endpoint.
        until: The first version that has it no more; the route table then names the endpoint that follows.
        policy: The rule that the caller must satisfy; None for no rule.
        target: Returns what the rule is asked about; None for the caller's own project and user.
        path: Judges the values in the path; called as the handler is, and raises a Failure.
        query: The schema of the query; None ignores the query.
        body: The schema of the JSON body; None reads no body, and asks for no Content-Type.
        limits: For each kind of entries, how many the document has.  ``max_<kind>_per_request`` is the option with
            the limit.
        lookup: Reads what the path names, as ``lookup(db, **path values)``.  It runs only if the body is refused: where
            what the path names is missing, its 404 goes before the refusal of the body.
        negotiates: Whether a GET is refused unless the client accepts JSON.
        gate: The reply to an older version: "path" is 404; "method" is 405 without Allow; "after media types" is 404,
            after the checks of Accept and Content-Type.
    """

    handler: Handler
    since: Version = OLDEST
    until: Version | None = None
    policy: str | None = None
    target: Target | None = None
    path: Callable[..., object] | None = None
    query: Query | None = None
    body: Body | None = None
    limits: Mapping[str, Callable[[Any], int]] = field(default_factory=dict)
    lookup: Callable[..., object] | None = None
    negotiates: bool = True
    gate: Gate = "path"

    def __call__(self, req: Request, **path_values: str) -> Reply:
        """Return the reply of the handler, after all checks.

        Raises:
            Failure: The first check that fails, or the handler's.
        """
        self._check_access(req)
        self._check_request(req, path_values)
        try:
            return self.handler(req, **path_values)
        except errors.Failure as failure:
            if not standard.repair(req.database, failure):
                raise
        return self.handler(req, **path_values)

    def _check_access(self, req: Request) -> None:
        """Check what can be judged without the content of the request."""
        if self.gate == "after media types":
            self._check_media_types(req)
            self._check_gate(req)
        else:
            self._check_gate(req)
            self._check_media_types(req)
        if self.policy is not None:
            req.authorize(self.policy, self.target(req) if self.target else None)

    def _check_gate(self, req: Request) -> None:
        if req.version < self.since:
            raise failures.MethodNotAllowed() if self.gate == "method" else failures.NoSuchRoute()

    def _check_media_types(self, req: Request) -> None:
        environ = req.environ
        if self.negotiates and environ["REQUEST_METHOD"] == "GET" and not accepts_json(environ.get("HTTP_ACCEPT")):
            raise failures.OnlyJSON()
        if self.body is not None:
            given = media_type(environ.get("CONTENT_TYPE"))
            if given is None or given.lower() != JSON:
                raise failures.UnsupportedMediaType(type=given)

    def _check_request(self, req: Request, path_values: dict[str, str]) -> None:
        """Check path, query and body, and leave the query and the body in the request."""
        if self.path is not None:
            self.path(req, **path_values)
        if self.query is not None:
            req.parameters = self.query.validate(req.pairs(), req.version)
        if self.body is None:
            return
        try:
            req.document = self._document(req, self.body)
        except errors.Failure:
            if self.lookup is not None:
                lookup = functools.partial(self.lookup, **path_values)
                req.read(lookup)
            raise

    def _document(self, req: Request, schema: Body) -> Any:
        options = req.conf.api
        content = body.read(req.environ, options.max_request_body_size)
        document = schema.validate(body.parse_json(content, options.max_request_body_values), req.version)
        for kind, count in self.limits.items():
            check_count(kind, count(document), req.conf.placement[f"max_{kind}_per_request"])
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


def accepts_json(accept: str | None) -> bool:
    """Return whether a client with this Accept header takes JSON; a client without the header does."""
    return accept == JSON or bool(create_accept_header(accept).acceptable_offers([JSON]))


def media_type(content_type: str | None) -> str | None:
    """Return the type without its parameters."""
    return (content_type or "").partition(";")[0].strip() or None
