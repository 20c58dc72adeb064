"""Instrumentation events, to which metrics, traces and the request log subscribe.

They are unrelated to the signals of the operating system.

Publishers do not know their subscribers, so that lower layers import no higher layers.  Publishing an event without
subscribers costs about a tenth of a microsecond.  Events are global to the process, like loggers.

Except for the environ of ``answered``, the facts of an event are numbers, words from short lists (including names of
resource classes), and the text of statements: never uuids, other names that clients choose, or external text.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, ParamSpec

Facts = ParamSpec("Facts")


class Signal(Generic[Facts]):
    """An event.  Calling it with its facts calls every subscriber with the same facts, in the same thread.

    Attributes:
        connected: Whether the event has a subscriber.  Publishers check it before they compute expensive facts.
    """

    __slots__ = ("_listeners", "connected")

    def __init__(self) -> None:
        self._listeners: tuple[Callable[Facts, object], ...] = ()
        self.connected = False

    def connect(self, listener: Callable[Facts, object]) -> None:
        """Subscribe.  The listener runs in the publishing thread: it must be fast and must not raise."""
        if listener not in self._listeners:
            self._listeners += (listener,)
            self.connected = True

    def disconnect(self, listener: Callable[Facts, object]) -> None:
        """Unsubscribe."""
        self._listeners = tuple(connected for connected in self._listeners if connected != listener)
        self.connected = bool(self._listeners)

    def __call__(self, *facts: Facts.args, **named: Facts.kwargs) -> None:
        for listener in self._listeners:
            listener(*facts, **named)


#: A part of a request has ended: name, seconds.  Parts may be nested, so their seconds do not add up.
timing: Signal[[str, float]] = Signal()

#: A part begins; a part has ended: name.  The events are paired and properly nested in each thread.
part_begun: Signal[[str]] = Signal()
part_ended: Signal[[str]] = Signal()

#: A statement was executed: text without values, seconds, name of the driver's exception or "".
executed: Signal[[str, float, str]] = Signal()

#: A response begins: environ, status, seconds.
answered: Signal[[Mapping[str, Any], int, float]] = Signal()

#: Labels of driver errors (placement/db/engine/driver_errors.py).
ErrorLabel = Literal[
    "deadlock",
    "lock_timeout",
    "serialization",
    "duplicate",
    "lost",
    "denied",
    "no_free_connection",
    "value",
    "bug",
]
#: The database or its driver reported an error.
driver_error: Signal[[ErrorLabel]] = Signal()

#: The cause of a retry: "changed" if the attempt found its data changed, "joint" if the attempt executed several
#: writes, which are retried separately, or a driver error.
RetryCause = Literal["changed", "joint", ErrorLabel]
#: An attempt at a write begins its transaction: number of the attempt, from 1.
attempted: Signal[[int]] = Signal()
#: A transaction is about to be retried: cause.
retried: Signal[[RetryCause]] = Signal()

#: A transaction with one or more writes was committed: number of writes.
written_jointly: Signal[[int]] = Signal()

#: The index was refreshed: seconds, transactions applied, providers.
refreshed: Signal[[float, int, int]] = Signal()

#: Amounts in the index may have changed: sums of capacity, usage and reserved amounts over all providers, by resource
#: class.  Only administrators create classes, so their number is small.
amounts_changed: Signal[[Mapping[str, tuple[float, float, float]]]] = Signal()

#: The cause of a reload of the index.
ReloadCause = Literal["start", "feed_lost", "feed_long", "out_of_step", "differs"]
#: All providers are about to be read into the index: cause.
reloaded: Signal[[ReloadCause]] = Signal()

#: A search for candidates has ended: seconds, candidates, whether a limit ended it (more may exist), obstacle
#: (``SearchResult.obstacle``; empty with candidates).
searched: Signal[[float, int, bool, str]] = Signal()

#: Expired leases were released: number.
leases_expired: Signal[[int]] = Signal()

#: A worker has looked for expired leases: number of leases not released yet.
leases_due: Signal[[int]] = Signal()

#: Requests of other APIs about claims have ended: outcome ("claimed", "moved", "held", "found", "released", or the name
#: of the failure's class), number.
claims_answered: Signal[[str, int]] = Signal()


@contextlib.contextmanager
def timed(name: str) -> Iterator[None]:
    """Publish the duration of a block, or of every call of a decorated function, as a ``timing`` with this name."""
    part_begun(name)
    began = time.perf_counter()
    try:
        yield
    finally:
        timing(name, time.perf_counter() - began)
        part_ended(name)
