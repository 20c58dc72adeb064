"""Makes a context from the identity headers: the policy decides by it, and log lines show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from placement.http.environ import CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID
from placement.http.failures import Unauthenticated, respond


class Identity:
    """Refuses a request without a user with 401 (docs: api-authentication)."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application."""
        # No layer further in needs the token.  What the context does not have cannot get into a log.
        context = RequestContext.from_environ(environ, auth_token=None, **_ids(environ), overwrite=True)
        if context.user_id is None or not _printable(context):
            anonymous(environ)  # the newest context is that of the log
            return respond(Unauthenticated(), environ, start_response)
        environ[CONTEXT] = context
        return self._application(environ, start_response)


def anonymous(environ: WSGIEnvironment) -> RequestContext:
    """Return a context without a user: identity headers of a request that was not authenticated are the client's."""
    return RequestContext(**_ids(environ), overwrite=True)


def _ids(environ: WSGIEnvironment) -> dict[str, Any]:
    return {"request_id": environ[REQUEST_ID], "global_request_id": environ[GLOBAL_REQUEST_ID]}


def _printable(context: RequestContext) -> bool:
    """Return whether the ids, which stand in each line of the log, cannot end the line."""
    ids = (context.user_id, context.project_id, context.domain_id, context.user_domain_id, context.project_domain_id)
    return all(each.isprintable() for each in ids if each)
