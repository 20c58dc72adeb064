"""/console/doctor"""

from __future__ import annotations

from placement.extensions.console import pages
from placement.extensions.console.machine_names import named_snapshot
from placement.extensions.console.views import finding_places
from placement.extensions.v1.examining import examined
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply

#: Places of a finding that are shown.
_PLACES = 50


@endpoint(policy="placement:v1:doctor", negotiates=False)
def show(req: Request) -> Reply:
    """Show what is wrong with the configuration, the database and its data, as this worker sees it, the worst first."""
    examination, snapshot = examined(req), named_snapshot(req)
    return pages.show(
        req,
        "doctor.html",
        page="doctor",
        findings=[
            (check, finding, [[*finding_places.linked(place, snapshot)] for place in finding.where[:_PLACES]])
            for check, finding in examination.findings
        ],
        made=[result for result in examination.results if result.not_made is None],
        not_made=[result for result in examination.results if result.not_made is not None],
    )
