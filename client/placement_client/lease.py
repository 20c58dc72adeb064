"""A claim with an end, which is extended while a block of code runs."""

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
from placement_client.operations import Consumers, Operations, answered, extension, releasing
from placement_client.query import Query
from placement_client.records import Claim
from placement_client.steps import Pause, Steps

LOG = logging.getLogger(__name__)
#: The number of extensions within the length of a lease, so that several in a row may fail.
PER_LENGTH = 6
#: The longest pause after an extension that failed, and the longest wait for the reply to one, in seconds.
RETRY, ATTEMPT = 5.0, 10.0
#: Seconds for which the end of a block tries to release the consumer, three times if no reply comes; after it, the
#: lease ends by itself.
RELEASE = 10.0


class Lease:
    """What a consumer holds for the length of a block.

    Its end by the clock of this process is never later than the one by the clock of the database: each extension counts
    from the moment before it was sent.  So what the clocks show does not matter.

    Attributes:
        claim: What is held.
    """

    claim: Claim

    def __init__(
        self,
        operations: Operations,
        consumer: str | uuid.UUID,
        length: int,
        claiming: Steps[Claim],
        on_lost: Callable[[LeaseLost], object] | None,
    ) -> None:
        self._operations, self._consumer, self._length = operations, consumer, length
        self._claiming, self._on_lost = claiming, on_lost
        #: When it was last extended, and when it ends: -inf before it begins, inf once it is closed.
        self._extended = self._ends = -math.inf
        #: Why the last extension failed.
        self._failure: Exception | None = None
        self._lost: LeaseLost | None = None
        # A client may have threads for the block, ``renew`` and ``watch``.  ``on_lost`` runs with the lock, so that
        # ``close`` waits for it.  It may call ``close`` itself, so the lock is reentrant.
        self._changing = threading.RLock()

    @property
    def expires_at(self) -> datetime.datetime:
        """When it ends unless it is extended, by the clock of the database."""
        assert self.claim.expires_at is not None
        return self.claim.expires_at

    @property
    def remaining(self) -> float:
        """The seconds until it ends unless it is extended; 0 if it is lost."""
        return 0.0 if self._lost else max(0.0, self._ends - time.monotonic())

    @property
    def lost(self) -> bool:
        """Whether what is held may be another's by now."""
        return self.remaining == 0.0

    def check(self) -> None:
        """Raise LeaseLost if it is lost."""
        if self.lost:
            lost = self._lost or self._loss()
            raise LeaseLost(*lost.args) from lost.__cause__

    # --- the steps ---

    def begin(self) -> Steps[None]:
        """Claim, and extend the claim if its end by the clock of this process is unknown, or has passed."""
        sent, deadline = time.monotonic(), time.monotonic() + self._operations.patience
        self.claim = yield from self._claiming
        if self.claim.outcome == "claimed":
            self._hold(sent)
        # Otherwise an earlier attempt, perhaps by another process, made the claim: its end is unknown here.
        while self.lost:
            yield from self._extend(deadline - time.monotonic())
            if time.monotonic() > deadline:
                self.check()

    def renew(self) -> Steps[None]:
        """Extend it again and again; return when it is lost."""
        pause = self._length / PER_LENGTH - (time.monotonic() - self._extended)
        while self._open:
            yield Pause(max(0.0, min(pause, self.remaining)))
            if not self._open:
                break
            try:
                yield from self._extend(0)
            except NothingHeld as gone:
                self._failure = gone
                break
            except Exception as error:  # it may be temporary: a new token or another network may help
                self._failure, pause = error, min(RETRY, self._length / PER_LENGTH)
            else:
                self._failure, pause = None, self._length / PER_LENGTH
        self._lose()

    def watch(self) -> Steps[None]:
        """Wait until it is lost or closed, independently of ``renew``, which may be waiting for a reply."""
        while self._open:
            yield Pause(min(self.remaining, self._length))
        self._lose()

    def close(self) -> None:
        """Stop extending it, and make its state final.

        If it is lost, ``on_lost`` has returned when this returns.  If it is not, it can no longer be lost.
        """
        with self._changing:
            if not self.lost:
                self._ends = math.inf
        self._lose()

    def end(self) -> Steps[None]:
        """Release the consumer, unless the lease is lost, or has not begun: then it may be another process's."""
        if self.lost:
            return
        try:
            yield from releasing([str(self._consumer)], RELEASE, RELEASE / 3)
        except Exception as error:  # must not replace an exception of the block
            LOG.warning("%s is not released, and ends at %s: %s", self._consumer, self.expires_at, error)

    def _extend(self, patience: float) -> Steps[None]:
        timeout = ATTEMPT if self.lost else max(0.1, min(ATTEMPT, self.remaining))
        reply = yield from answered(extension(self._consumer, self._length, timeout), patience)
        self.claim = Claim.of(document_of(reply))
        self._hold(reply.sent)

    @property
    def _open(self) -> bool:
        """Whether it has begun, and is neither lost nor closed."""
        return 0.0 < self.remaining < math.inf

    def _hold(self, sent: float) -> None:
        """Count from this moment, unless it is over by now."""
        with self._changing:
            if self._ends < math.inf and sent + self._length > time.monotonic():
                self._extended, self._ends = sent, sent + self._length

    def _loss(self) -> LeaseLost:
        lost = LeaseLost(f"The lease of {self._consumer} is lost: {self._failure or 'it was not extended in time'}")
        lost.__cause__ = self._failure
        return lost

    def _lose(self) -> None:
        """Mark it as lost and call ``on_lost``, at most once; does nothing before it begins, or once it is closed."""
        with self._changing:
            if self._lost or not -math.inf < self._ends < math.inf:
                return
            self._lost = self._loss()
            LOG.warning("%s", self._lost)
            if self._on_lost is not None:
                try:
                    self._on_lost(self._lost)
                except Exception:
                    LOG.exception("on_lost has failed for the lease of %s", self._consumer)


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
    """Claim for the length of a block, which is given the Lease: it is extended until the block ends.

    The end of the block releases the consumer.  If the service cannot be reached then, or the process stops, the
    claim ends by itself, ``expires_in`` seconds after it was last extended.

    If it cannot be extended until its end, the lease is *lost*: what was held may be another's.  ``on_lost`` is called
    at that time, in a thread of the client or in the event loop, and by the end of the block at the latest, which waits
    for it; ``lost`` is True, ``check`` raises LeaseLost, and so does the end of the block.

    Args:
        expires_in: The seconds for which a claim outlives its process, at least 1.
        on_lost: What is to be done when the lease is lost, such as to kill a process; a function, also for asyncio.  It
            must not wait for the end of the block.

    Raises:
        Refused: There is no place, as for ``claim``, which describes the other arguments.
        NothingHeld: What was claimed is over before it could be extended; there is no block.
        LeaseLost: At the end of the block, or in place of it, where every reply takes longer than ``expires_in``.
    """
    if inspect.iscoroutinefunction(on_lost):
        raise TypeError("on_lost is called, not awaited: it has to be a function")
    claiming = self.claim(
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
    return Lease(self, consumer, expires_in, claiming, on_lost)
