"""Leases: claims that expire, and are extended while a block of code runs."""

from __future__ import annotations

import datetime
import inspect
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping

from placement_client.errors import LeaseLost, NothingHeld, document_of
from placement_client.operations import Consumers, Operations, extension_call, release_consumers, retry_call
from placement_client.query import Query
from placement_client.records import Claim
from placement_client.steps import Pause, Steps

LOG = logging.getLogger(__name__)
#: Number of extensions in the duration of a lease: several in a row can fail before it expires.
EXTENSIONS_PER_LEASE = 6
#: Maximum number of seconds to pause after a failed extension, and to wait for the response to an extension.
RETRY_PAUSE, ATTEMPT_TIMEOUT = 5.0, 10.0
#: Seconds for which the end of a block tries to release the consumer, in three attempts without a response; if all
#: fail, the lease expires.
RELEASE_PATIENCE = 10.0


class Lease:
    """A claim held for the duration of a block.

    The process measures the duration of the lease from the time before an extension is sent, so that the lease never
    ends later in this process than in the database.  The clocks need not agree.

    Attributes:
        claim: The claim.
    """

    claim: Claim

    def __init__(
        self,
        operations: Operations,
        consumer: str | uuid.UUID,
        duration: int,
        claim_steps: Steps[Claim],
        on_lost: Callable[[LeaseLost], object] | None,
    ) -> None:
        self._operations, self._consumer, self._duration = operations, consumer, duration
        self._claim_steps, self._on_lost = claim_steps, on_lost
        #: Monotonic times of the last extension and of the expiry: -inf before the lease begins, inf once it is closed.
        self._extended_at = self._expiry = -math.inf
        #: The failure of the last extension.
        self._failure: Exception | None = None
        self._lost: LeaseLost | None = None
        # The block, ``renew`` and ``watch`` may run in different threads.  ``on_lost`` is called with the lock held, so
        # that ``close`` waits for it; the lock is reentrant because ``on_lost`` may call ``close``.
        self._lock = threading.RLock()

    @property
    def expires_at(self) -> datetime.datetime:
        """The time at which the lease expires unless it is extended, by the clock of the database."""
        assert self.claim.expires_at is not None
        return self.claim.expires_at

    @property
    def remaining(self) -> float:
        """Seconds until the lease expires unless it is extended; 0 if it is lost."""
        return 0.0 if self._lost else max(0.0, self._expiry - time.monotonic())

    @property
    def lost(self) -> bool:
        """Whether another consumer may hold the resources."""
        return self.remaining == 0.0

    def check(self) -> None:
        """Raise LeaseLost if the lease is lost."""
        if self.lost:
            error = self._lost or self._lost_error()
            raise LeaseLost(*error.args) from error.__cause__

    # --- the steps ---

    def begin(self) -> Steps[None]:
        """Claim, and extend the claim if its remaining time is unknown or zero."""
        sent, deadline = time.monotonic(), time.monotonic() + self._operations.patience
        self.claim = yield from self._claim_steps
        if self.claim.outcome == "claimed":
            self._hold(sent)
        # Otherwise an earlier attempt, perhaps of another process, made the claim, and the remaining time is unknown.
        while self.lost:
            yield from self._extend(deadline - time.monotonic())
            if time.monotonic() > deadline:
                self.check()

    def renew(self) -> Steps[None]:
        """Extend the lease periodically until it is lost or closed."""
        pause = self._duration / EXTENSIONS_PER_LEASE - (time.monotonic() - self._extended_at)
        while self._is_open:
            yield Pause(max(0.0, min(pause, self.remaining)))
            if not self._is_open:
                break
            try:
                yield from self._extend(0)
            except NothingHeld as error:
                self._failure = error
                break
            except Exception as error:  # possibly temporary: an expired token, a network failure
                self._failure, pause = error, min(RETRY_PAUSE, self._duration / EXTENSIONS_PER_LEASE)
            else:
                self._failure, pause = None, self._duration / EXTENSIONS_PER_LEASE
        self._lose()

    def watch(self) -> Steps[None]:
        """Wait until the lease is lost or closed, independently of ``renew``, which may be waiting for a response."""
        while self._is_open:
            yield Pause(min(self.remaining, self._duration))
        self._lose()

    def close(self) -> None:
        """Stop the extensions, and make the state final.

        If the lease is lost, wait until ``on_lost`` has returned; otherwise it can no longer be lost.
        """
        with self._lock:
            if not self.lost:
                self._expiry = math.inf
        self._lose()

    def end(self) -> Steps[None]:
        """Release the consumer, unless the lease is lost or has not begun: then another process may hold it."""
        if self.lost:
            return
        try:
            yield from release_consumers([str(self._consumer)], RELEASE_PATIENCE, RELEASE_PATIENCE / 3)
        except Exception as error:  # must not replace an exception of the block
            LOG.warning("%s was not released; its lease expires at %s: %s", self._consumer, self.expires_at, error)

    def _extend(self, patience: float) -> Steps[None]:
        timeout = ATTEMPT_TIMEOUT if self.lost else max(0.1, min(ATTEMPT_TIMEOUT, self.remaining))
        reply = yield from retry_call(extension_call(self._consumer, self._duration, timeout), patience)
        self.claim = Claim.of(document_of(reply))
        self._hold(reply.sent)

    @property
    def _is_open(self) -> bool:
        """Whether the lease has begun, and is neither lost nor closed."""
        return 0.0 < self.remaining < math.inf

    def _hold(self, sent: float) -> None:
        """Restart the lease from the time at which a request was sent, unless that leaves no time."""
        with self._lock:
            if self._expiry < math.inf and sent + self._duration > time.monotonic():
                self._extended_at, self._expiry = sent, sent + self._duration

    def _lost_error(self) -> LeaseLost:
        error = LeaseLost(f"The lease of {self._consumer} is lost: {self._failure or 'it was not extended in time'}")
        error.__cause__ = self._failure
        return error

    def _lose(self) -> None:
        """Mark the lease as lost and call ``on_lost``, at most once, and only between its begin and ``close``."""
        with self._lock:
            if self._lost or not -math.inf < self._expiry < math.inf:
                return
            self._lost = self._lost_error()
            LOG.warning("%s", self._lost)
            if self._on_lost is not None:
                try:
                    self._on_lost(self._lost)
                except Exception:
                    LOG.exception("on_lost failed for the lease of %s", self._consumer)


def lease(
    self: Operations,
    consumer: str | uuid.UUID,
    query: str | Query,
    *,
    project_id: str,
    user_id: str,
    consumer_type: str,
    expires_in: int,
    count: int = 1,
    strategy: str | Mapping[str, str] | None = None,
    apart_from: Consumers = (),
    together_with: Consumers = (),
    on_lost: Callable[[LeaseLost], object] | None = None,
) -> Lease:
    """Claim for the duration of a block, extend the claim until the block ends, and then release the consumer.

    The block receives the Lease.  If the service cannot be reached at the end, or the process dies, the claim expires
    ``expires_in`` seconds after its last extension.

    If the claim cannot be extended before it expires, the lease is *lost*: another consumer may hold its resources.
    Then ``lost`` is True, and ``check`` and the end of the block raise LeaseLost.  ``on_lost`` is called at that time,
    in a thread of the client or in the event loop; the end of the block waits for it.

    Args:
        expires_in: Seconds for which the claim outlives its process, at least 1.
        on_lost: A callback for a lost lease, for example to kill a process; not a coroutine function, even for
            asyncio.  It must not wait for the end of the block.

    Raises:
        Refused: No place fits, as for ``claim``, which describes the other arguments.
        NothingHeld: The claim expired before it could be extended; the block does not run.
        LeaseLost: The lease was lost; before the block if every response takes longer than ``expires_in``.
    """
    if inspect.iscoroutinefunction(on_lost):
        raise TypeError("on_lost must be a function, not a coroutine function")
    claim_steps = self.claim(
        consumer,
        query,
        project_id=project_id,
        user_id=user_id,
        consumer_type=consumer_type,
        count=count,
        strategy=strategy,
        expires_in=expires_in,
        apart_from=apart_from,
        together_with=together_with,
    )
    return Lease(self, consumer, expires_in, claim_steps, on_lost)
