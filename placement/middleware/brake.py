"""A brake on guesses: how many wrong passwords one address may try (a token bucket per address)."""

from __future__ import annotations

import collections
import ipaddress
import math
import threading
import time
from wsgiref.types import WSGIEnvironment

#: Wrong passwords that an address may send at once, and the seconds until it may send one more.
BURST = 10
PAUSE = 2.0
_ADDRESSES = 10_000


class Brake:
    """Counts wrong passwords by address.  Threads share it; each process has its own.

    An attempt counts once it has failed, so that clients which know their password never hold up each other.  Attempts
    that run at the same time may exceed the burst, and delay the next one by as much.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Per address when its bucket is full again, the address that failed last at the end.
        self._full_at: collections.OrderedDict[str, float] = collections.OrderedDict()

    def wait(self, address: str) -> int:
        """The whole seconds after which the address may try; 0: now."""
        with self._lock:
            full_in = self._full_at.get(address, 0.0) - time.monotonic()
        return max(0, math.ceil(full_in - (BURST - 1) * PAUSE))

    def failed(self, address: str) -> None:
        """Count a wrong password."""
        with self._lock:
            now = time.monotonic()
            self._full_at[address] = max(now, self._full_at.pop(address, now)) + PAUSE
            if len(self._full_at) > _ADDRESSES:
                self._full_at.popitem(last=False)


def address_of(environ: WSGIEnvironment) -> str:
    """What is counted as one address: that of the client, of IPv6 its network.

    Where a proxy lists several, the last one is what the proxy itself has seen.
    """
    address = environ.get("REMOTE_ADDR", "").rpartition(",")[2].strip()
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return str(address)
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)
