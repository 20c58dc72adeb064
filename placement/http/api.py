"""An API of the service, as a value: what it serves, and how it differs from other APIs that are mounted beside it.

``deploy`` mounts several below one set of shared layers.  The layer ``Mount`` finds the API that a path belongs to, so
that all other layers can ask it: which form its error documents have, and which of its paths need no authentication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from wsgiref.types import WSGIApplication, WSGIEnvironment

from oslo_policy import policy

from placement import errors
from placement.http.endpoint import Endpoint
from placement.http.service import Service
from placement.version_history import OLDEST, Version

#: The endpoints of one path by method; several, in the order of their lifetimes, where a method changed its meaning.
Methods = dict[str, Endpoint | tuple[Endpoint, ...]]
Table = dict[str, Methods]
Headers = Sequence[tuple[str, str]]
#: Puts itself around an application.  A layer that the configuration has not switched on returns the application.
Layer = Callable[[WSGIApplication, Service], WSGIApplication]


class Versioning(Protocol):
    """How a client and an API agree on a version."""

    def negotiate(self, environ: WSGIEnvironment) -> Version:
        """Return the version that the headers of a request ask for.

        Raises:
            Failure: They cannot be read, or ask for a version that the API does not have.  ``headers`` of the failure
                may name the versions that it has.
        """

    def headers(self, version: Version) -> Headers:
        """Return the headers that state the version of a reply; none for an API without versions."""


class ErrorDocuments(Protocol):
    """How an API reports a failure over HTTP."""

    def render(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> tuple[str, bytes]:
        """Return the content type and the content of the reply; its headers are sent by the caller.

        Args:
            failure: Its ``sentence`` is empty where the status says everything, and may repeat what the client sent.
            environ: May lack the version, since layers outside of the negotiation report failures, too.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Api:
    """One API.  It is equal to no other, so that it can be a key.

    Args:
        name: The service type, as in the catalog of the Identity service.
        prefix: The path below which the API is mounted, such as ``/baremetal``; empty for the API that has all paths
            that belong to no other.
        routes: The route table; its paths begin after the prefix.
        patterns: Regular expressions of values in paths, by name; a value without one has no slashes.
        versioning: How the version of a request is negotiated.
        error_documents: The form of its errors.
        open_paths: Paths that need no authentication, as in ``routes``.
        rules: The policy rules of its endpoints.
        failures: The failures that no other API has, for the OpenAPI document.
        layers: Layers of this API alone, outermost first, inside of the shared ones.
        cache_headers_since: The first version whose replies state their age (docs: api-cache-headers).
        anonymous_is_admin: Whether noauth2 takes a request without a token for an administrator's, and one with the
            token that keystoneauth sends with the auth type "none"; not requests of pages.
        has_pages: Whether the API has pages that send requests to it.  Noauth2 then knows theirs from those of pages
            of other origins.
        headers: Sent with every reply of the API, errors included, that has none of the name (in lower case).
        strict_bodies: Whether a body must have the content type of JSON (docs: api-content-type).  An API that takes
            it with any takes an empty body for ``{}``.
        strict_queries: Whether an endpoint that declares no query refuses every parameter, else it ignores them; and
            whether a parameter with one value is refused if it is repeated.
    """

    name: str
    prefix: str = ""
    routes: Table
    patterns: Mapping[str, str] = field(default_factory=dict)
    versioning: Versioning
    error_documents: ErrorDocuments
    open_paths: frozenset[str] = frozenset({"/"})
    rules: Sequence[policy.RuleDefault] = ()
    failures: tuple[type[errors.Failure], ...] = ()
    layers: tuple[Layer, ...] = ()
    cache_headers_since: Version = OLDEST
    anonymous_is_admin: bool = False
    has_pages: bool = False
    headers: Headers = ()
    strict_bodies: bool = True
    strict_queries: bool = False

    def __post_init__(self) -> None:
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise ValueError(f"The prefix {self.prefix!r} must begin with a slash and not end with one.")
