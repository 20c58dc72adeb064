"""The one wrapper round a handler: everything that all routes do alike is said here and nowhere else.

    @endpoint(since=mv.TRAITS, policy="placement:resource_providers:traits:update", body=schema.REPLACE)
    def replace(req, uuid):
        ...

Before the handler runs, in this order (contract 1.1): the version gate, Accept, Content-Type, the policy.  What their
schemas have against its body and query is told when the handler first looks at them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from webob.acceptparse import create_accept_header

from placement import errors
from placement import microversion as mv
from placement.db import standard
from placement.http import faults
from placement.http.request import Request
from placement.http.response import JSON, Reply

Handler = Callable[..., Reply]
Target = Callable[[Request], Mapping[str, Any]]
Gate = Literal["path", "method", "after media types"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A handler with what holds for it.  Called as the handler is, with the checks before."""

    handler: Handler
    since: mv.Version
    until: mv.Version | None
    policy: str | None
    target: Target | None
    body: Any
    query: Any
    negotiates: bool
    gate: Gate

    def __call__(self, req: Request, **path_values: str) -> Reply:
        """What the handler gives; raises the first failure of the checks, or of the handler."""
        if self.gate == "after media types":
            self._check_media_types(req)
            self._check_gate(req)
        else:
            self._check_gate(req)
            self._check_media_types(req)
        if self.policy is not None:
            req.authorize(self.policy, self.target(req) if self.target else None)
        req.query_schema = self.query
        if self.body is not None:
            req.body_schema = self.body
            req.receive()
        try:
            return self.handler(req, **path_values)
        except errors.Failure as failure:
            if not standard.put_back(req.database, failure):
                raise
        return self.handler(req, **path_values)

    def _check_gate(self, req: Request) -> None:
        if req.version < self.since:
            raise faults.MethodNotAllowed() if self.gate == "method" else faults.NoSuchRoute()

    def _check_media_types(self, req: Request) -> None:
        environ = req.environ
        if self.negotiates and req.method == "GET" and not accepts_json(environ.get("HTTP_ACCEPT")):
            raise faults.OnlyJSON()
        if self.body is not None:
            given = media_type(environ.get("CONTENT_TYPE"))
            if given is None or given.lower() != JSON:
                raise faults.UnsupportedMediaType(type=given)


def endpoint(
    *,
    since: mv.Version = mv.INITIAL,
    until: mv.Version | None = None,
    policy: str | None = None,
    target: Target | None = None,
    body: Any = None,
    query: Any = None,
    negotiates: bool = True,
    gate: Gate = "path",
) -> Callable[[Handler], Endpoint]:
    """Make an endpoint of a handler ``(req, **path_values) -> Reply``.

    :param since: the first version that has it.
    :param until: the first version that has it no more; the table then names another endpoint to follow it.
    :param policy: the rule that must hold; None lets everybody in.
    :param target: what the rule is asked about, when that is not the caller's own project and user.
    :param body: the schema of the JSON body; None reads no body, and asks for no Content-Type.
    :param query: the schema of the query string; None ignores it.
    :param negotiates: whether a GET refuses a client that does not want JSON.
    :param gate: what an older version gets: "path" 404, "method" 405 without Allow, "after media types" 404 too, but
        only after Accept and Content-Type were found good.
    """
    return functools.partial(
        Endpoint,
        since=since,
        until=until,
        policy=policy,
        target=target,
        body=body,
        query=query,
        negotiates=negotiates,
        gate=gate,
    )


def accepts_json(accept: str | None) -> bool:
    """Whether a client with this Accept header takes JSON; one without the header does."""
    return accept == JSON or bool(create_accept_header(accept).acceptable_offers([JSON]))


def media_type(content_type: str | None) -> str | None:
    """The type without its parameters."""
    return (content_type or "").partition(";")[0].strip() or None
