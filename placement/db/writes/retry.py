"""Retries: after which errors an attempt may run again, how often, and after what pause.

An attempt runs again as a whole, in a fresh transaction, and nothing that it learned is kept.  Retrying a statement
inside a transaction, or reusing what an earlier attempt read, can overrun capacity (docs/adr/0002).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import exc

from placement import errors, signals
from placement.db.engine import driver_errors
from placement.db.engine.driver_errors import ErrorClass
from placement.db.writes.transaction import Collision

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

#: Attempts at a read, and at a write whose route sets no other number.
ATTEMPTS = 10
#: Seconds: the longest pause between two attempts, and the age at which a request starts no further attempt.
LONGEST_PAUSE = 0.1
_LONGEST_REQUEST = 60.0


def new_deadline() -> float:
    """Return the time, by the monotonic clock, after which a request that begins now starts no further attempt."""
    return time.monotonic() + _LONGEST_REQUEST


def until_done(
    attempt: Callable[[int], Result],
    attempts: int,
    exhausted: type[errors.Failure],
    deadline: float,
    on_lost: Callable[[Exception, float], None],
) -> Result:
    """Run an attempt until one neither collides nor loses its connection.

    It pauses between attempts, with exponential backoff and full jitter, so that writers that collided spread out.

    Args:
        attempt: Runs the attempt with a number, from 1: begin, work, commit.
        attempts: The largest number of attempts.
        exhausted: The failure if all attempts collide, or the deadline passes.
        deadline: See :func:`new_deadline`.
        on_lost: Called with the error and the time when the attempt began, if its connection was lost.

    Raises:
        Failure: ``exhausted``.
        DatabaseUnavailable: The connection was lost twice, or in the last attempt.
        TablesMissing, DatabaseRefuses, InvalidValue: The driver error means this; another attempt would not help.
    """
    lost_before = False
    for number in range(1, attempts + 1):
        began = time.monotonic()
        try:
            return attempt(number)
        except Collision:
            cause: signals.RetryCause = "changed"
            reason = "the data changed since it was read"
        except (exc.SQLAlchemyError, UnicodeError, OverflowError) as error:
            cause, reason = driver_errors.label(error), driver_errors.message(error)
            signals.driver_error(cause)
            if _retryable(error) is ErrorClass.LOST:
                on_lost(error, began)
                if lost_before or number == attempts or has_passed(deadline):
                    raise unavailable(error) from error
                lost_before = True
        LOG.debug("attempt %d failed: %s", number, reason)
        if has_passed(deadline):
            break
        if number < attempts:
            signals.retried(cause)
            pause(number)
    raise exhausted()


def pause(number: int) -> None:
    """Sleep for a random time after the attempt with this number, from 1; its limit grows with each attempt."""
    time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.001 * 2 ** min(number, 10))))


def has_passed(deadline: float) -> bool:
    """Whether the deadline has passed."""
    return time.monotonic() > deadline


def unavailable(error: BaseException) -> errors.Unavailable:
    """Return the failure for a server that does not answer; raise TablesMissing or DatabaseRefuses if that is why."""
    raise_for_operator(error)
    LOG.error("The database does not answer: %s", driver_errors.message(error))
    return errors.DatabaseUnavailable()


def raise_for_operator(error: BaseException) -> None:
    """Raise TablesMissing or DatabaseRefuses if the error means that: a state that lasts until an operator acts."""
    if driver_errors.is_missing_table(error):
        LOG.error("The database lacks tables of this service: %s", driver_errors.message(error))
        raise errors.TablesMissing() from error
    if driver_errors.classify(error) is ErrorClass.DENIED:
        LOG.error("The database refuses the service: %s", driver_errors.message(error))
        raise errors.DatabaseRefuses() from error


def _retryable(error: exc.SQLAlchemyError | UnicodeError | OverflowError) -> ErrorClass:
    """Return the class of an error after which the attempt may run again; raise for any other error."""
    error_class = driver_errors.classify(error)
    if error_class is ErrorClass.VALUE:
        raise errors.InvalidValue() from error
    if error_class in (ErrorClass.INTERNAL, ErrorClass.DENIED):
        raise_for_operator(error)
        raise error
    return error_class
