"""What the layers tell of their work for the sake of numbers, as they tell the log what they do in words.

Whoever does the work tells a signal, and knows nobody who hears it; who wants to know connects from above (metrics,
the log of slow requests).  A signal that nobody hears costs a tenth of a microsecond.  Signals belong to the process,
as the log does.

Facts are numbers, and words from short lists: never a uuid, a name that a client chose, or a text of somebody else's.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar

Facts = ParamSpec("Facts")
Given = ParamSpec("Given")
Result = TypeVar("Result")


class Signal(Generic[Facts]):
    """Something that happens.  Called with its facts, it calls whoever is connected with the same."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: tuple[Callable[Facts, object], ...] = ()

    @property
    def heard(self) -> bool:
        """Whether anybody is connected, for facts that are worth something to find out."""
        return bool(self._listeners)

    def connect(self, listener: Callable[Facts, object]) -> None:
        """Have the listener called from now on, in the thread of whoever tells; it must neither raise nor dawdle."""
        if listener not in self._listeners:
            self._listeners += (listener,)

    def disconnect(self, listener: Callable[Facts, object]) -> None:
        """Leave the listener alone from now on."""
        self._listeners = tuple(other for other in self._listeners if other != listener)

    def __call__(self, *facts: Facts.args, **named: Facts.kwargs) -> None:
        for listener in self._listeners:
            listener(*facts, **named)


#: A part of a request is done: its name, and the seconds it took.  Parts may lie in one another.
spent: Signal[[str, float]] = Signal()

#: A request was answered: its environ, the status, the seconds.
answered: Signal[[Mapping[str, Any], int, float]] = Signal()

Refusal = Literal[
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
#: The database or its driver refused something.
refused: Signal[[Refusal]] = Signal()

Retry = Literal["changed", Refusal]
#: A transaction is about to be run again: "changed" if it found out by itself that it must be, else what refused it.
retried: Signal[[Retry]] = Signal()

#: The index is as new as can be again: the seconds it took, the transactions that it had missed, its providers.
refreshed: Signal[[float, int, int]] = Signal()

Reload = Literal["start", "feed_lost", "feed_long", "out_of_step", "differs"]
#: All providers are read into the index: why.
reloaded: Signal[[Reload]] = Signal()

#: A search for candidates has ended: the seconds it took, how many it found, whether that is all that were wanted, and
#: if there are none the rule that left nothing.
searched: Signal[[float, int, bool, str]] = Signal()


def part(name: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Have every call of a function told as a part of the request."""

    def wrap(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(function)
        def timed(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            if not spent._listeners:
                return function(*args, **kwargs)
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent(name, time.perf_counter() - began)

        return timed

    return wrap
