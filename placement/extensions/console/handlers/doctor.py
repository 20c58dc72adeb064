"""/console/doctor"""

from __future__ import annotations

from placement.extensions.console import pages
from placement.extensions.console.machine_names import named_snapshot
from placement.extensions.console.views import finding_places
from placement.extensions.v1.worker_examination import examine_worker
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply

#: Maximum number of places shown per finding.
_MAX_PLACES = 50


@endpoint(policy="placement:v1:doctor", negotiates=False)
def show(req: Request) -> Reply:
    """Show problems in the configuration, the database and its data as this worker process sees them, worst first."""
    examination, snapshot = examine_worker(req), named_snapshot(req)
    return pages.show(
        req,
        "doctor.html",
        page="doctor",
        findings=[
            (check, finding, [[*finding_places.linked_parts(place, snapshot)] for place in finding.where[:_MAX_PLACES]])
            for check, finding in examination.findings
        ],
        completed=[result for result in examination.results if result.not_made is None],
        skipped=[result for result in examination.results if result.not_made is not None],
    )
