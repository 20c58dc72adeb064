"""Turns the identity headers into the context that the policy judges and that log lines show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_context.context import RequestContext

from placement.http.environ import CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID
from placement.http.faults import Unauthenticated
from placement.http.service import Service
from placement.middleware.refusal import refuse


class Identity:
    """401 unless the request has a user; the version document needs none (docs: api-authentication)."""

    def __init__(self, application: Any, _service: Service) -> None:
        self.application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application."""
        ids = {"request_id": environ[REQUEST_ID], "global_request_id": environ[GLOBAL_REQUEST_ID]}
        if environ["PATH_INFO"] in ("", "/"):
            # No layer has looked who sends it: its identity headers come from the client.
            context = RequestContext(**ids, overwrite=True)
        else:
            # No layer further in needs the token, and what is not here cannot get into a log.
            context = RequestContext.from_environ(environ, auth_token=None, **ids, overwrite=True)
            if context.user_id is None or not _printable(context):
                return refuse(Unauthenticated(), environ, start_response)
        environ[CONTEXT] = context
        return self.application(environ, start_response)


def _printable(context: RequestContext) -> bool:
    """Whether the ids that stand in each line of the log are no more than a part of that line."""
    ids = (context.user_id, context.project_id, context.domain_id, context.user_domain_id, context.project_domain_id)
    return all(each.isprintable() for each in ids if each)
