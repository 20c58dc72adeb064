"""Keys under which layers and the application store facts about a request in its WSGI environ."""

from __future__ import annotations

#: The id of the request; the id that the client assigned to a chain of requests, or None.
REQUEST_ID = "placement.request_id"
GLOBAL_REQUEST_ID = "placement.global_request_id"
#: The ``RequestContext`` of the caller.
CONTEXT = "placement.context"
#: The ``Api`` that serves the path.
API = "placement.api"
#: The path to route, if a layer of the API has rewritten it; PATH_INFO stays as sent.
PATH = "placement.path"
#: The negotiated version of the API; absent before the negotiation.
VERSION = "placement.version"
#: The path of the route, with the prefix of its API, and the class of the failure, for the log and the metrics.
ROUTE = "placement.route"
FAILURE = "placement.failure"
#: The outcome of a search, a claim or a release for the log: ``found`` and perhaps ``obstacle``, ``claimed`` and
#: ``refused``, or ``released``.
OUTCOME = "placement.outcome"
