"""The declaration of the v1 API as an extension of the service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg

from placement.db.database import Database
from placement.db.schema.schema import Addition
from placement.db.upkeep.sweep import Swept
from placement.extension import Extension
from placement.http.api import Api

if TYPE_CHECKING:
    from placement.index.live import LiveIndex
    from placement.metrics.instruments import Instruments, Subscription

_PLACEMENT = [
    cfg.IntOpt(
        "max_claims_per_request",
        default=10000,
        min=1,
        max=16000,  # a statement names each consumer twice, and SQLite takes 32,766 parameters
        help="Maximum number of places in one POST /v1/claims: the sum of the counts of its requests, plus the "
        "consumers in apart_from and together_with. A larger claim set is refused with 400.",
    ),
    cfg.ListOpt(
        "avoid_traits",
        default=["COMPUTE_STATUS_DISABLED"],
        help="Traits that the root of a tree must not have when the service chooses the place: in POST /v1/claims, and "
        "accordingly in GET /v1/explain and /v1/capacity. A query that names such a trait in root_required follows its "
        "own rule for it. GET /allocation_candidates ignores this option: nova forbids the trait of disabled hosts "
        "itself.",
    ),
]


_HISTORY = [
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Record the changes of each request, in the same transaction, for GET /v1/events and /v1/history. "
        "Processes with a disabled history leave gaps in it.",
    ),
    cfg.IntOpt(
        "retention_days",
        default=30,
        min=1,
        help="Days after which events and usage samples are removed. Worker processes remove them in small steps, as "
        "does 'placement-manage db sweep'.",
    ),
    cfg.IntOpt(
        "max_events",
        default=20_000_000,
        min=1000,
        help="Maximum number of events; if there are more, the oldest are removed early. An event takes about 500 "
        "bytes; a claim records one event for its consumer and one for each of its providers.",
    ),
    cfg.IntOpt(
        "max_undone_events",
        default=100_000,
        min=1000,
        help="Maximum number of events that one request for a past state, GET /v1/overview?at=, undoes. If more have "
        "been recorded since that time, the request is refused. Each takes about ten microseconds.",
    ),
    cfg.IntOpt(
        "max_waiting_requests",
        min=0,
        help="Maximum number of requests per process that wait for events: GET /v1/events with wait or as a stream. "
        "Further requests are answered at once. The default is a quarter of the threads of the web server, at least 1; "
        "0 if it has one thread; 1 if their number is unknown. Set it to 0 if each process of the server has one "
        "thread.",
    ),
]


def _api() -> Api:
    from placement.extensions.v1.api import V1

    return V1


def _metrics(instruments: Instruments) -> Iterable[Subscription]:
    from placement.extensions.v1 import metrics

    return metrics.subscriptions(instruments)


def _schema() -> Addition:
    from placement.extensions.v1.history.tables import TABLES

    return Addition(TABLES)


def _attach(database: Database, conf: cfg.ConfigOpts, threads: int | None) -> None:
    from placement.extensions.v1.history import recorder

    recorder.attach(database, conf, threads)


def _start(database: Database, index: LiveIndex) -> None:
    from placement.extensions.v1.history import recorder

    recorder.history_of(database).index = index


def _sweep(database: Database) -> Sequence[Swept]:
    from placement.extensions.v1.history import recorder

    return recorder.remove_old_events(database)


EXTENSION = Extension(
    name="v1",
    requires=("doctor",),
    options={"placement": _PLACEMENT, "history": _HISTORY},
    api=_api,
    metrics=_metrics,
    schema=_schema,
    attach=_attach,
    start=_start,
    swept=_sweep,
)
