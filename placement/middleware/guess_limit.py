"""A rate limit on wrong passwords: a token bucket for each client address."""

from __future__ import annotations

import collections
import ipaddress
import math
import threading
import time
from wsgiref.types import WSGIEnvironment

#: Maximum burst of wrong passwords per address; seconds until another wrong password is allowed.
BURST = 10
PAUSE = 2.0
#: Maximum number of addresses remembered.
MAX_ADDRESSES = 10_000


class GuessLimit:
    """A count of wrong passwords per address, shared by the threads of one process.

    An attempt counts when it has failed, so that clients with the right password do not delay each other.  Concurrent
    attempts may exceed the burst; they delay the next attempt accordingly.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The time at which each address's bucket is full again (monotonic clock), in the order of the last failure.
        self._full_at: collections.OrderedDict[str, float] = collections.OrderedDict()

    def seconds_to_wait(self, address: str) -> int:
        """Return the seconds until the address may try again, rounded up; 0 if it may try immediately."""
        with self._lock:
            seconds = self._full_at.get(address, 0.0) - time.monotonic()
        return max(0, math.ceil(seconds - (BURST - 1) * PAUSE))

    def count(self, address: str) -> None:
        """Count a wrong password of the address."""
        with self._lock:
            now = time.monotonic()
            self._full_at[address] = max(now, self._full_at.pop(address, now)) + PAUSE
            if len(self._full_at) > MAX_ADDRESSES:
                self._full_at.popitem(last=False)


def address_of(environ: WSGIEnvironment) -> str:
    """Return the key of the client's bucket: its IPv4 address, or its /64 network for IPv6.

    If a proxy lists several addresses, the last one is the peer of the proxy itself.
    """
    text = environ.get("REMOTE_ADDR", "").rpartition(",")[2].strip()
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return str(text)
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
