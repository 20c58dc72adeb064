"""Faults of commits and of what clients are told about them."""

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

#: Seconds between a reply and the COMMIT that it speaks of.
_EARLY = 0.05
#: One of so many transactions is lost.
_RARE = 30


@fault
def answered_before_commit() -> None:
    """A write is answered as done a moment before it is committed."""
    commit_attempt, local = Attempts.commit, threading.local()
    commit = dialects.commit

    def commit_late(connection: Any) -> None:
        answered = getattr(local, "answered", None)
        if answered is not None:
            answered()
            time.sleep(_EARLY)
        commit(connection)

    def commit_behind(self: Attempts, work: Any, number: int) -> Any:
        done, outcome = threading.Event(), list[Any]()

        def keep(db: Any) -> Any:
            outcome[:] = [work(db)]
            return outcome[0]

        def run() -> None:
            local.answered = done.set
            try:
                commit_attempt(self, keep, number)
            except BaseException as error:
                outcome[:] = [error]
            finally:
                done.set()

        threading.Thread(target=run).start()
        done.wait()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    dialects.commit, Attempts.commit = commit_late, commit_behind


@fault
def answered_without_commit() -> None:
    """One write of many is answered as done, and rolled back."""
    commit, numbers = dialects.commit, itertools.count(1)

    def commit_most(connection: Any) -> None:
        if next(numbers) % _RARE == 0:
            connection.rollback()
        else:
            commit(connection)

    dialects.commit = commit_most


@fault
def unknown_told_as_refused() -> None:
    """A write of which the reply to COMMIT was lost is answered as one that was not begun."""

    def commit(self: Attempts, connection: Any, known: Any = Attempts._commit) -> None:
        try:
            known(self, connection)
        except errors.OutcomeUnknown as unknown:
            raise errors.DatabaseUnavailable() from unknown

    Attempts._commit = commit


@fault
def unknown_run_again() -> None:
    """A write of which the reply to COMMIT was lost is run again, so that it may be done twice."""

    def commit(self: Attempts, connection: Any, known: Any = Attempts._commit) -> None:
        try:
            known(self, connection)
        except errors.OutcomeUnknown as unknown:
            raise (unknown.__cause__ or unknown) from None

    Attempts._commit = commit


@fault
def away_for_a_moment() -> None:
    """One write of many is refused as if the database were away."""
    commit, numbers = Attempts.commit, itertools.count(1)

    def commit_most(self: Attempts, work: Any, number: int) -> Any:
        if next(numbers) % _RARE == 0:
            raise errors.DatabaseUnavailable()
        return commit(self, work, number)

    Attempts.commit = commit_most


@fault
def conflict_not_expected() -> None:
    """A consumer generation that is not current ends the request as an exception that is no failure."""
    check = Consumer.check_generation

    def check_or_fail(self: Consumer, given: int | None) -> None:
        try:
            check(self, given)
        except errors.ConsumerGenerationConflict as conflict:
            raise RuntimeError(self.uuid) from conflict

    Consumer.check_generation = check_or_fail


@fault
def statement_in_the_error() -> None:
    """The error of a conflict has the statement that showed it."""
    respond = failures.respond

    def respond_with_statement(failure: errors.Failure, *more: Any) -> Any:
        if isinstance(failure, errors.Conflict):
            failure.sentence += f" [SQL: {consumer._LOCK}]"
        return respond(failure, *more)

    failures.respond = respond_with_statement
