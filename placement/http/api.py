"""An API of the service as a value: its routes, and its differences from the APIs mounted beside it.

``deploy`` mounts several APIs below one set of shared layers.  The layer ``Mount`` finds the API of a path and puts it
in the environ.  There other layers look up the form of its error documents and the paths that need no authentication.
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

#: The endpoints of one path by method.  A method that changed its meaning has several, ordered by version.
Methods = dict[str, Endpoint | tuple[Endpoint, ...]]
Table = dict[str, Methods]
Headers = Sequence[tuple[str, str]]
#: A wrapper of an application.  A layer that the configuration does not enable returns the application unchanged.
Layer = Callable[[WSGIApplication, Service], WSGIApplication]


class Versioning(Protocol):
    """The negotiation of a version between a client and an API."""

    def negotiate(self, environ: WSGIEnvironment) -> Version:
        """Return the version that the request headers select.

        Raises:
            Failure: The headers are malformed or select an unsupported version.  ``headers`` of the failure may list
                the supported versions.
        """

    def headers(self, version: Version) -> Headers:
        """Return the response headers that state the version; empty for an API without versions."""


class ErrorDocuments(Protocol):
    """The form in which an API reports failures over HTTP."""

    def render(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> tuple[str, bytes]:
        """Return the content type and the body of the response.  The caller sends the failure's headers.

        Args:
            failure: The failure to report.  Its ``sentence`` is empty if the status says everything, and may quote
                the client's input.
            environ: The environ, which may lack the version: layers before the negotiation also report failures.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Api:
    """One API.  Compared by identity, so that it can be a dictionary key.

    Attributes:
        name: The service type in the catalog of the Identity service.
        prefix: The path below which the API is mounted, such as ``/baremetal``.  The API with the empty prefix serves
            every path that no other prefix matches.
        routes: The route table; its paths begin after the prefix.
        patterns: Regular expressions for path values, by name.  A value without a pattern matches anything but a slash.
        versioning: The negotiation of the version of a request.
        error_documents: The form of the error documents.
        open_paths: Paths of ``routes`` that need no authentication.
        rules: The policy rules of the endpoints.
        failures: The failures that only this API raises, for the OpenAPI document.
        layers: Layers of this API alone, outermost first, inside the shared layers.
        cache_headers_since: The first version whose responses state their age (docs: api-cache-headers).
        anonymous_is_admin: Whether noauth2 treats a request as an administrator's if it has no token, or the token that
            keystoneauth sends with the auth type "none".  A request without a token from a page is excluded, unless the
            API ``has_pages`` and the page has the service's origin.
        has_pages: Whether the API has pages that send requests to it.  Noauth2 then distinguishes their requests from
            requests of pages of other origins.
        headers: Default headers (names in lower case) of every response, errors included.
        strict_bodies: Whether a body must have the content type of JSON (docs: api-content-type).  Otherwise any type
            is accepted, and an empty body is read as ``{}``.
        strict_queries: Whether an endpoint without a declared query refuses every parameter instead of ignoring them,
            and whether repeating a single-valued parameter is refused.
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
