"""DELETE /v1/claims"""

from __future__ import annotations

from placement.extensions.v1.bulk_release import release_matching, release_named
from placement.extensions.v1.failures import NothingNamed
from placement.extensions.v1.schemas import release as schema
from placement.extensions.v1.schemas.consumer import consumer_filter
from placement.extensions.v1.schemas.scope import check_only
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, ok
from placement.objects.consumer import canonical_uuid


@endpoint(policy="placement:v1:claims:delete", query=schema.QUERY, dry_run=lambda _req: (), replies=schema.REPLIES)
def release(req: Request) -> Reply:
    """Release the resources of the named consumers, or of the consumers that meet every condition."""
    uuids = req.parameters.all("consumer")
    by_conditions = any(name in schema.CONDITION_NAMES for name in req.parameters)
    if bool(uuids) == by_conditions or (uuids and "limit" in req.parameters):
        raise NothingNamed()
    check_only(req.parameters)
    for uuid in uuids:
        canonical_uuid(uuid)  # the schema validates only the last value
    if uuids:
        result = release_named(req.writes_to, uuids)
    else:
        conditions = consumer_filter(req, req.parameters)
        result = release_matching(req.writes_to, conditions, int(req.parameters.get("limit", schema.DEFAULT_LIMIT)))
    req.log_released(len(result.released))
    return ok(schema.document(result))
