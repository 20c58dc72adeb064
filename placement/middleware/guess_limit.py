"""Limits how many wrong passwords an address may send, by a token bucket for each address."""

from __future__ import annotations

import collections
import ipaddress
import math
import threading
import time
from wsgiref.types import WSGIEnvironment

#: Wrong passwords that an address may send at once, and the seconds after which it may send one more.
BURST = 10
PAUSE = 2.0
#: The most addresses that are remembered.
ADDRESSES = 10_000


class GuessLimit:
    """Counts wrong passwords by address.  Threads share it; each process has its own.

    An attempt counts once it has failed, so that clients that know their password do not delay each other.  Attempts
    that run at the same time may exceed the burst, and delay the next one accordingly.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: When the bucket of each address is full again; the address that failed last is at the end.
        self._full_at: collections.OrderedDict[str, float] = collections.OrderedDict()

    def seconds_to_wait(self, address: str) -> int:
        """Return the seconds, rounded up, after which the address may try again; 0 for now."""
        with self._lock:
            full_in = self._full_at.get(address, 0.0) - time.monotonic()
        return max(0, math.ceil(full_in - (BURST - 1) * PAUSE))

    def count(self, address: str) -> None:
        """Count a wrong password of the address."""
        with self._lock:
            now = time.monotonic()
            self._full_at[address] = max(now, self._full_at.pop(address, now)) + PAUSE
            if len(self._full_at) > ADDRESSES:
                self._full_at.popitem(last=False)


def address_of(environ: WSGIEnvironment) -> str:
    """Return what is counted as one address: the client's, or of IPv6 its /64 network.

    Where a proxy lists several, the last is the one that the proxy itself has seen.
    """
    address = environ.get("REMOTE_ADDR", "").rpartition(",")[2].strip()
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return str(address)
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)
