"""/v1/doctor"""

from __future__ import annotations

from placement.extensions.doctor.document import document
from placement.extensions.v1.schemas import doctor as schema
from placement.extensions.v1.worker_examination import examine_worker
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok


@endpoint(policy="placement:v1:doctor", query=schema.SHOW, replies=schema.REPLIES)
def show(req: Request) -> Reply:
    """Show problems in the configuration, the database and its data, as this worker process finds them."""
    return ok(document(examine_worker(req, req.parameters.all("check")), schema.MAX_PLACES), modified=NOW)
