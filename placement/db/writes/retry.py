"""Retries of attempts: the errors that permit them, their number, and the pauses between them.

An attempt is retried as a whole, in a new transaction, and keeps nothing of the earlier attempts.  Retrying a statement
inside a transaction, or reusing rows that an earlier attempt read, can exceed capacity (docs/adr/0002).
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
#: Maximum pause between two attempts, in seconds.
MAX_PAUSE = 0.1
#: Seconds after which a request starts no further attempt.
_RETRY_PERIOD = 60.0


def new_deadline() -> float:
    """Return the time, by the monotonic clock, after which a request that begins now starts no further attempt."""
    return time.monotonic() + _RETRY_PERIOD


def until_done(
    attempt: Callable[[int], Result],
    attempts: int,
    exhausted: type[errors.Failure],
    deadline: float,
    on_lost: Callable[[Exception, float], None],
) -> Result:
    """Return the result of the first attempt that neither collides nor loses its connection.

    The pauses between attempts have exponential backoff and full jitter, so that writers that have collided spread out.

    Args:
        attempt: A function of the number of the attempt, from 1, that runs one whole attempt, COMMIT included.
        attempts: The maximum number of attempts.
        exhausted: The failure to raise if all attempts collide or the deadline passes.
        deadline: See :func:`new_deadline`.
        on_lost: A callback with the error and the time at which the attempt began, if its connection was lost.

    Raises:
        Failure: ``exhausted``.
        DatabaseUnavailable: The connection was lost twice, or in the last attempt.
        TablesMissing, DatabaseRefuses, InvalidValue: The driver error is of this kind; a retry would not help.
    """
    lost_before = False
    for number in range(1, attempts + 1):
        began = time.monotonic()
        try:
            return attempt(number)
        except Collision:
            cause: signals.RetryCause = "changed"
            reason = "the data changed after it was read"
        except (exc.SQLAlchemyError, UnicodeError, OverflowError) as error:
            cause, reason = driver_errors.label(error), driver_errors.message(error)
            signals.driver_error(cause)
            if _retryable_class(error) is ErrorClass.LOST:
                on_lost(error, began)
                if lost_before or number == attempts or has_passed(deadline):
                    raise lost_server_failure(error) from error
                lost_before = True
        LOG.debug("attempt %d failed: %s", number, reason)
        if has_passed(deadline):
            break
        if number < attempts:
            signals.retried(cause)
            pause(number)
    raise exhausted()


def pause(number: int) -> None:
    """Sleep for a random time after an attempt, counted from 1; the maximum grows with each attempt."""
    time.sleep(random.uniform(0, min(MAX_PAUSE, 0.001 * 2 ** min(number, 10))))


def has_passed(deadline: float) -> bool:
    """Whether the deadline has passed."""
    return time.monotonic() > deadline


def lost_server_failure(error: BaseException) -> errors.Unavailable:
    """Return the failure for a lost server; raise TablesMissing or DatabaseRefuses for an error of that kind."""
    raise_for_operator(error)
    LOG.error("The database does not answer: %s", driver_errors.message(error))
    return errors.DatabaseUnavailable()


def raise_for_operator(error: BaseException) -> None:
    """Raise TablesMissing or DatabaseRefuses for an error of that kind, which only an operator can fix."""
    if driver_errors.is_missing_table(error):
        LOG.error("The database lacks tables of this service: %s", driver_errors.message(error))
        raise errors.TablesMissing() from error
    if driver_errors.classify(error) is ErrorClass.DENIED:
        LOG.error("The database refuses the service: %s", driver_errors.message(error))
        raise errors.DatabaseRefuses() from error


def _retryable_class(error: exc.SQLAlchemyError | UnicodeError | OverflowError) -> ErrorClass:
    """Return the class of an error after which the attempt may run again; raise for any other error."""
    error_class = driver_errors.classify(error)
    if error_class is ErrorClass.VALUE:
        raise errors.InvalidValue() from error
    if error_class in (ErrorClass.INTERNAL, ErrorClass.DENIED):
        raise_for_operator(error)
        raise error
    return error_class
