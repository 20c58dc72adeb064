"""Instrumentation events: the layers publish what they did, and metrics, traces and the request log subscribe.

These signals have nothing to do with those of the operating system.

A module that does the work calls an event and does not know its subscribers, so imports still point down.  An event
without subscribers costs about a tenth of a microsecond.  Events belong to the process, as the log does.

Facts are numbers and words from short lists, names of resource classes among them, and the texts of statements: never a
uuid, another name that a client chose, or a text from outside.
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
        connected: Whether there is a subscriber; a publisher asks this before it computes facts that are expensive.
    """

    __slots__ = ("_listeners", "connected")

    def __init__(self) -> None:
        self._listeners: tuple[Callable[Facts, object], ...] = ()
        self.connected = False

    def connect(self, listener: Callable[Facts, object]) -> None:
        """Subscribe.  The listener runs in the thread that publishes: it must not raise, and must be fast."""
        if listener not in self._listeners:
            self._listeners += (listener,)
            self.connected = True

    def disconnect(self, listener: Callable[Facts, object]) -> None:
        """Unsubscribe."""
        self._listeners = tuple(other for other in self._listeners if other != listener)
        self.connected = bool(self._listeners)

    def __call__(self, *facts: Facts.args, **named: Facts.kwargs) -> None:
        for listener in self._listeners:
            listener(*facts, **named)


#: A part of a request has ended: its name, and its seconds.  Parts may be nested, so their seconds do not add up.
timing: Signal[[str, float]] = Signal()

#: A part begins, or has ended: its name.  They come in pairs, in one thread, an inner part within an outer one.
part_begun: Signal[[str]] = Signal()
part_ended: Signal[[str]] = Signal()

#: A statement was executed: its text without values, its seconds, and the name of the driver's exception if it failed.
executed: Signal[[str, float, str]] = Signal()

#: A request was answered: its environ, the status, the seconds.
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

#: Why a transaction is run again: "changed" if the attempt itself found that its data had changed, "joint" if it did
#: several writes, which are done separately now, or a driver error.
RetryCause = Literal["changed", "joint", ErrorLabel]
#: An attempt at a write begins its transaction: its number, from 1.
attempted: Signal[[int]] = Signal()
#: A transaction is about to be run again.
retried: Signal[[RetryCause]] = Signal()

#: A transaction was committed that did a write, or several together: how many.
written_jointly: Signal[[int]] = Signal()

#: The index is up to date again: the seconds it took, the transactions that it had missed, its number of providers.
refreshed: Signal[[float, int, int]] = Signal()

#: The index may have other amounts than before: by resource class the sums of capacity, usage and reserved amounts over
#: all providers.  Administrators name classes, so there are few.
amounts_changed: Signal[[Mapping[str, tuple[float, float, float]]]] = Signal()

ReloadCause = Literal["start", "feed_lost", "feed_long", "out_of_step", "differs"]
#: All providers are about to be read into the index, for this cause.
reloaded: Signal[[ReloadCause]] = Signal()

#: A search for candidates has ended: its seconds, the number of candidates, whether a limit ended it, so that more may
#: exist, and its obstacle (``SearchResult.obstacle``), which is empty if there are candidates.
searched: Signal[[float, int, bool, str]] = Signal()

#: What so many expired leases held was given back.
leases_expired: Signal[[int]] = Signal()

#: A worker has looked for expired leases: the number of those that are not given back yet.
leases_due: Signal[[int]] = Signal()

#: Requests of other APIs about claims were answered: the outcome ("claimed", "moved", "held", "found", "released", or
#: the name of the failure's class), and how many.
claims_answered: Signal[[str, int]] = Signal()


@contextlib.contextmanager
def timed(name: str) -> Iterator[None]:
    """Publish the seconds of a block, or of every call of a decorated function, as a ``timing`` of this name."""
    part_begun(name)
    began = time.perf_counter()
    try:
        yield
    finally:
        timing(name, time.perf_counter() - began)
        part_ended(name)
