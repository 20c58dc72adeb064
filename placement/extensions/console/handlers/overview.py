"""/console/"""

from __future__ import annotations

import datetime
from typing import Any

from placement.checks.finding import Severity
from placement.extensions.console import pages, past
from placement.extensions.console.machine_names import named_snapshot
from placement.extensions.console.views import cloud
from placement.extensions.console.views.request_summary import RequestSummary, summaries, whole_requests
from placement.extensions.console.views.usage_chart import UsageChart
from placement.extensions.v1.event_reader import EventReader
from placement.extensions.v1.history.event import EventFilter
from placement.extensions.v1.overview import usage_history
from placement.extensions.v1.schemas import event as event_schema
from placement.extensions.v1.worker_examination import recent_examination
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, ok
from placement.objects.claims import leases
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

#: Class shown by default, if it exists.
_DEFAULT_CLASS = "VCPU"
#: Hosts in each table; requests among the latest changes.
_ROWS, _CHANGES = 6, 8
#: Events read for the latest changes: a claim has several, a request for many consumers hundreds.
_EVENTS = 300
#: Providers named for each problem that needs action.
_EXAMPLES = 3
#: A lease expires soon if it expires within this number of seconds.
_SOON = 3600
#: Seconds for which the doctor's findings are reused: its checks read the whole database.
_FINDINGS_AGE = 60
_DAY = datetime.timedelta(days=1)
#: Points in the chart of a class over the last day.
_POINTS = 72
_TENTHS = (
    "under 10 %",
    *(f"{tenth * 10}\N{EN DASH}{tenth * 10 + 9} %" for tenth in range(1, 9)),
    "90\N{EN DASH}100 %",
    "over 100 %",
)

_BY_CLASS = Query(
    Object(
        Field("class", string(maxLength=255), since=OLDEST),
        Field("group", string(maxLength=255), since=OLDEST),
        past.AT,
    )
)


@endpoint(policy="placement:v1:overview:show", query=_BY_CLASS, negotiates=False)
def show(req: Request) -> Reply:
    """Show the cloud, now or in the past: problems, totals by class, usage of hosts, and the latest changes."""
    at = past.requested_time(req)
    snapshot = named_snapshot(req) if at is None else past.state_of(req, at).snapshot
    totals = cloud.by_pressure(cloud.totals(snapshot))
    chosen = _chosen_class(req, [level.resource_class for level in totals])
    levels = cloud.host_levels(snapshot, chosen)
    return pages.show(
        req,
        "overview.html",
        page="overview",
        at=at,
        providers=len(snapshot),
        trees=snapshot.forest.all_roots.count,
        totals=totals,
        charts=_charts(req, at),
        chosen=chosen,
        groupings=cloud.groupings(snapshot),
        grouping=req.parameters.get("group", ""),
        hosts_count=len(levels.hosts),
        tenths=_tenths(levels.histogram()),
        fullest=levels.fullest(_ROWS),
        emptiest=levels.emptiest(_ROWS),
        over=cloud.over_committed(snapshot, _EXAMPLES),
        disabled=cloud.disabled_in_use(snapshot, _EXAMPLES),
        expiring=_count_expiring(req) if at is None else 0,
        may_examine=at is None and req.may("placement:v1:doctor"),
        changes=_changes(req) if at is None else None,
    )


@endpoint(policy="placement:v1:overview:show", query=_BY_CLASS, negotiates=False)
def list_hosts(req: Request) -> Reply:
    """Return the hosts with inventory of a class for the heat map, in the order of its groups, as parallel lists."""
    at = past.requested_time(req)
    snapshot = named_snapshot(req) if at is None else past.state_of(req, at).snapshot
    grouping = req.parameters.get("group", "")
    levels = cloud.host_levels(snapshot, _chosen_class(req, cloud.class_names(snapshot)), grouping)
    return ok({
        "resource_class": levels.resource_class,
        "uuids": [host.uuid for host in levels.hosts],
        "names": [host.name for host in levels.hosts],
        "capacity": levels.capacity.tolist(),
        "used": levels.used.tolist(),
        "disabled": levels.is_disabled,
        "over": levels.is_over,
        "groups": levels.groups,
    })  # fmt: skip


@endpoint(policy="placement:v1:doctor", negotiates=False)
def show_findings(req: Request) -> Reply:
    """Show the number of errors that the doctor finds: a fragment that the page loads after itself."""
    errors = [
        finding for _, finding in recent_examination(req, _FINDINGS_AGE).findings if finding.severity is Severity.ERROR
    ]
    return pages.show(req, "findings.html", count=len(errors))


def _chosen_class(req: Request, classes: list[str]) -> str:
    """Return the class in the query, or else the default class if it exists, or else the first class."""
    name: str | None = req.parameters.get("class")
    return name or (_DEFAULT_CLASS if _DEFAULT_CLASS in classes or not classes else classes[0])


def _tenths(counts: list[int]) -> list[tuple[str, int, float]]:
    """Return the label, the number of hosts and the bar width in percent of each row of the histogram."""
    highest = max(*counts, 1)
    return [(label, count, round(100 * count / highest, 1)) for label, count in zip(_TENTHS, counts, strict=True)]


def _charts(req: Request, at: datetime.datetime | None) -> dict[str, Any]:
    """Return the charts of the day before ``at`` or now, by class; empty if the caller may not see usage history."""
    if not req.may("placement:v1:usage:show"):
        return {}
    end = at or req.now()
    samples = usage_history.samples_over_time(req, end - _DAY, end, _POINTS, present=at is None)
    return {name: UsageChart(name, series, end - _DAY, end) for name, series in samples.items() if len(series) > 1}


def _count_expiring(req: Request) -> int:
    """Return the number of leases that expire soon; 0 if the caller may not see consumers."""
    return req.read(lambda db: leases.count_expiring(db, _SOON)) if req.may("placement:v1:consumers:list", {}) else 0


def _changes(req: Request) -> list[RequestSummary] | None:
    """Return the latest changes; None if the caller may not see the events of all projects."""
    if not req.may(event_schema.RULE, {}):
        return None
    page = EventReader(req.database, req.index, EventFilter(), _EVENTS).page(None, newest_first=True)
    return summaries(whole_requests(page)[0], page.names, named_snapshot(req), req.now())[:_CHANGES]
