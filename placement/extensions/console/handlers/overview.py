"""/console/"""

from __future__ import annotations

from placement.extensions.console import pages
from placement.extensions.console.views import cloud
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, ok
from placement.objects.provider import ResourceProvider
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

#: The class that is shown first, where it exists.
_FIRST = "VCPU"
_ROWS = 8
_TENTHS = (*(f"up to {tenth * 10} %" for tenth in range(1, 11)), "over 100 %")

_BY_CLASS = Query(Object(Field("class", string(maxLength=255), since=OLDEST)))


@endpoint(policy="placement:v1:overview:show", query=_BY_CLASS, negotiates=False)
def show(req: Request) -> Reply:
    """Show the cloud: sums by class, how full hosts are, what needs attention, what changed last."""
    snapshot = req.index.current()
    totals = cloud.totals(snapshot)
    chosen = _chosen(req, [level.resource_class for level in totals])
    levels = cloud.host_levels(snapshot, chosen)
    return pages.show(
        req,
        "overview.html",
        page="overview",
        providers=len(snapshot),
        trees=snapshot.forest.all_roots.count,
        totals=totals,
        chosen=chosen,
        hosts_count=len(levels.hosts),
        tenths=_tenths(levels.histogram()),
        fullest=levels.fullest(_ROWS),
        emptiest=levels.emptiest(_ROWS),
        over=cloud.over_committed(snapshot, _ROWS),
        disabled=cloud.disabled(snapshot, _ROWS),
        changed=req.read(lambda db: ResourceProvider.changed_last(db, _ROWS)),
    )


@endpoint(policy="placement:v1:overview:show", query=_BY_CLASS, negotiates=False)
def list_hosts(req: Request) -> Reply:
    """List all hosts that have a class by name, with capacity and usage in parallel lists: the heat map's cells."""
    snapshot = req.index.current()
    levels = cloud.host_levels(snapshot, _chosen(req, cloud.class_names(snapshot)))
    return ok({
        "resource_class": levels.resource_class,
        "uuids": [host.uuid for host in levels.hosts],
        "names": [host.name for host in levels.hosts],
        "capacity": levels.capacity.tolist(),
        "used": levels.used.tolist(),
    })  # fmt: skip


def _chosen(req: Request, known: list[str]) -> str:
    """Return the class that the request names; without one, the usual class, or the first that there is."""
    named: str | None = req.parameters.get("class")
    return named or (_FIRST if _FIRST in known or not known else known[0])


def _tenths(counts: list[int]) -> list[tuple[str, int, float]]:
    """Return label, count and width in percent of each row of the histogram."""
    most = max(*counts, 1)
    return [(label, count, round(100 * count / most, 1)) for label, count in zip(_TENTHS, counts, strict=True)]
