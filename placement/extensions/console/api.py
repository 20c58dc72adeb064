"""The route table of the console, path -> {method: endpoint}, and its ``Api`` value.

Pages require the same credentials as the API.  A 401 is rendered as the sign-in page (ADR 33), so only the assets and
the API reference are open.
"""

from __future__ import annotations

from placement.extensions.console.handlers import (
    asset,
    consumer,
    doctor,
    event,
    overview,
    provider,
    query,
    reference,
    usage_history,
)
from placement.extensions.console.pages import ErrorPages
from placement.extensions.v1.api import PROVIDER
from placement.http.api import Api, Table
from placement.version_history import Unversioned

TABLE: Table = {
    "/": {"GET": overview.show},
    "/hosts": {"GET": overview.list_hosts},
    "/findings": {"GET": overview.show_findings},
    "/providers": {"GET": provider.list_providers},
    "/providers/{ident}": {"GET": provider.show, "POST": provider.try_inventory},
    "/query": {"GET": query.show, "POST": query.try_claim},
    "/query/form": {"GET": query.show_form},
    "/suggestions": {"GET": query.suggest},
    "/consumers": {"GET": consumer.list_consumers},
    "/consumers/{consumer}": {"GET": consumer.show},
    "/usage": {"GET": usage_history.show},
    "/events": {"GET": event.list_events},
    "/events/rows": {"GET": event.follow},
    "/doctor": {"GET": doctor.show},
    "/api": {"GET": reference.show},
    "/assets/{name}": {"GET": asset.show},
}

#: Only scripts and style sheets of this service: nothing inline, no other host, no frame.
CONTENT_SECURITY_POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip

CONSOLE = Api(
    name="placement-console",
    prefix="/console",
    routes=TABLE,
    versioning=Unversioned(),
    error_documents=ErrorPages(),
    patterns={"ident": PROVIDER},
    open_paths=frozenset({"/api", *(f"/assets/{name}" for name in asset.ASSETS)}),
    headers=(
        # Pages show data that requires credentials; responses with assets replace this header.
        ("cache-control", "no-store"),
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        # With "no-referrer", browsers would hide the origin of a form even from this service.
        ("referrer-policy", "same-origin"),
    ),
    anonymous_is_admin=True,
    has_pages=True,
)
