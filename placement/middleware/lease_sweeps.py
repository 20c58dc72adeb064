"""Gives back what expired leases hold, after a request, so that no daemon is needed (docs: leases)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement.http.service import Service
from placement.objects.claims.lease_sweep import LeaseSweeper


def lease_sweeps(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application, followed by sweeps if ``[placement]lease_sweep_interval`` is not 0."""
    interval = service.conf.placement.lease_sweep_interval
    return _Swept(application, LeaseSweeper(service.database), interval) if interval else application


class _Swept:
    """Sweeps once in an interval, in the thread that has sent a reply."""

    def __init__(self, application: WSGIApplication, sweeper: LeaseSweeper, interval: float) -> None:
        self._application = application
        self._sweeper = sweeper
        self._interval = interval
        #: By the monotonic clock.
        self._next_at = time.monotonic() + interval

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application."""
        reply = self._application(environ, start_response)
        now = time.monotonic()
        if now < self._next_at:
            return reply
        # Two threads may come here at once: both sweeps are correct.
        self._next_at = now + self._interval
        return _Followed(reply, self._sweeper)


class _Followed:
    """A reply; the server closes it when it has sent it (PEP 3333), and then leases are swept."""

    def __init__(self, reply: Iterable[bytes], sweeper: LeaseSweeper) -> None:
        self._reply = reply
        self._sweeper = sweeper

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reply)

    def close(self) -> None:
        """Close the reply, and sweep."""
        try:
            if close := getattr(self._reply, "close", None):
                close()
        finally:
            self._sweeper.sweep()
