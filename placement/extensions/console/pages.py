"""Rendering of templates, and error pages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

import jinja2

from placement import errors, package
from placement.extensions.console.views import units
from placement.http.environ import REQUEST_ID
from placement.http.request import Request
from placement.http.response import Reply, page

HTML = "text/html; charset=UTF-8"

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("placement.extensions.console"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_TEMPLATES.filters |= {"number": units.number, "in_units": units.in_units, "amount_of": units.amount_of}

#: Title of the page for a 401; other error pages show the phrase of the status.
_SIGN_IN = "Sign in"


def render(template: str, mount_path: str, **values: Any) -> bytes:
    """Return a rendered template as UTF-8.

    Args:
        template: The file name.
        mount_path: The quoted path at which the console is mounted, with which links begin.
        values: Variables of the template; text is escaped.
    """
    text = _TEMPLATES.get_template(template).render(base=mount_path, version=package.version(), **values)
    return text.encode(errors="backslashreplace")


def show(req: Request, template: str, status: int = 200, **values: Any) -> Reply:
    """Return a response with a rendered page."""
    return page(render(template, req.mount_path, **values), HTML, status)


class ErrorPages:
    """Error documents as pages; the page of a 401 contains the sign-in form."""

    def render(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> tuple[str, bytes]:
        """Return the content type and the page."""
        unauthenticated = status is HTTPStatus.UNAUTHORIZED
        content = render(
            "error.html",
            quote(environ.get("SCRIPT_NAME", "").encode("latin-1")),
            title=_SIGN_IN if unauthenticated else status.phrase,
            status=status.value,
            sentence=failure.line,
            request_id=environ.get(REQUEST_ID),
            sign_in=unauthenticated,
            by_password=any(value.lower().startswith("basic") for _, value in failure.headers),
        )
        return HTML, content
