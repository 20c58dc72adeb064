"""The keys under which layers and the application leave what they find out about a request in its environ."""

from __future__ import annotations

#: The id of the request, and the id that the client gave to a chain of requests (None if it gave none).
REQUEST_ID = "placement.request_id"
GLOBAL_REQUEST_ID = "placement.global_request_id"
#: The ``RequestContext`` of the caller.
CONTEXT = "placement.context"
#: The ``Api`` that the path belongs to.
API = "placement.api"
#: The path that is looked up in the route table, if a layer of the API has changed it; PATH_INFO is what was sent.
PATH = "placement.path"
#: The version of the API that the request uses.  Absent until it is negotiated.
VERSION = "placement.version"
#: The path of the route, with the prefix of its API, and the class of the failure, for the log and the metrics.
ROUTE = "placement.route"
FAILURE = "placement.failure"
#: What a search found, for the log: ``found``, and ``obstacle`` if that is nothing; or how many were ``claimed`` and
#: ``refused``.
SEARCH = "placement.search"
