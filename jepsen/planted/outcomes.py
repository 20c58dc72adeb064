"""Faults of commits and of their responses."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from jepsen.planted.faults import fault
from placement import errors
from placement.db.engine import dialects
from placement.db.writes.attempt import Attempts
from placement.http import failures
from placement.objects import consumer
from placement.objects.consumer import Consumer

#: Seconds between a response and the COMMIT that it reports.
_COMMIT_DELAY = 0.05
#: Transactions per lost one.
_LOSS_INTERVAL = 30


@fault
def answered_before_commit() -> None:
    """A write is reported as done shortly before it is committed."""
    commit_attempt, local = Attempts.commit, threading.local()
    commit = dialects.commit

    def commit_late(connection: Any) -> None:
        report = getattr(local, "answered", None)
        if report is not None:
            report()
            time.sleep(_COMMIT_DELAY)
        commit(connection)

    def commit_behind(self: Attempts, work: Any, number: int) -> Any:
        outcome_known, outcome = threading.Event(), list[Any]()

        def keep(db: Any) -> Any:
            outcome[:] = [work(db)]
            return outcome[0]

        def run() -> None:
            local.answered = outcome_known.set
            try:
                commit_attempt(self, keep, number)
            except BaseException as error:
                outcome[:] = [error]
            finally:
                outcome_known.set()

        threading.Thread(target=run).start()
        outcome_known.wait()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    dialects.commit, Attempts.commit = commit_late, commit_behind


@fault
def answered_without_commit() -> None:
    """One of many writes is reported as done, but rolled back."""
    commit, numbers = dialects.commit, itertools.count(1)

    def commit_sometimes(connection: Any) -> None:
        if next(numbers) % _LOSS_INTERVAL == 0:
            connection.rollback()
        else:
            commit(connection)

    dialects.commit = commit_sometimes


@fault
def unknown_outcome_reported_as_refused() -> None:
    """A write whose COMMIT got no response is reported as not begun."""

    def commit(self: Attempts, connection: Any, original: Any = Attempts._commit) -> None:
        try:
            original(self, connection)
        except errors.OutcomeUnknown as unknown:
            raise errors.DatabaseUnavailable() from unknown

    Attempts._commit = commit


@fault
def unknown_outcome_retried() -> None:
    """A write whose COMMIT got no response is retried, so that it may take effect twice."""

    def commit(self: Attempts, connection: Any, original: Any = Attempts._commit) -> None:
        try:
            original(self, connection)
        except errors.OutcomeUnknown as unknown:
            raise (unknown.__cause__ or unknown) from None

    Attempts._commit = commit


@fault
def spurious_unavailability() -> None:
    """One of many writes is refused as if the database were unavailable."""
    commit, numbers = Attempts.commit, itertools.count(1)

    def commit_sometimes(self: Attempts, work: Any, number: int) -> Any:
        if next(numbers) % _LOSS_INTERVAL == 0:
            raise errors.DatabaseUnavailable()
        return commit(self, work, number)

    Attempts.commit = commit_sometimes


@fault
def conflict_not_handled() -> None:
    """A consumer generation conflict ends the request with an unhandled exception."""
    check = Consumer.check_generation

    def check_or_fail(self: Consumer, stated: int | None) -> None:
        try:
            check(self, stated)
        except errors.ConsumerGenerationConflict as conflict:
            raise RuntimeError(self.uuid) from conflict

    Consumer.check_generation = check_or_fail


@fault
def statement_in_error() -> None:
    """The error of a conflict contains the SQL statement that detected it."""
    respond = failures.respond

    def respond_with_statement(failure: errors.Failure, *more: Any) -> Any:
        if isinstance(failure, errors.Conflict):
            failure.sentence += f" [SQL: {consumer._LOCK}]"
        return respond(failure, *more)

    failures.respond = respond_with_statement
