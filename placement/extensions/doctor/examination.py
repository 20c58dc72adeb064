"""Examinations: checks run one after the other, and their results."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import exc

from placement import errors, extension
from placement.checks.check import Check, NotMadeError, Subject
from placement.checks.finding import Finding, Severity, error, warning
from placement.db.engine import driver_errors
from placement.db.engine.driver_errors import ErrorClass
from placement.db.schema import schema
from placement.db.writes import retry
from placement.extensions.doctor import signals

LOG = logging.getLogger(__name__)
#: The command that applies all safe fixes.
FIX = "placement-manage doctor --fix --yes"
#: The finding of a check that applies but could not run.
_NOT_MADE = "This check could not run."
_SEE_REVISION = "placement-manage doctor --check revision"


class OutOfTimeError(Exception):
    """The time for the examination has run out."""


def time_limit(deadline: float) -> Callable[[int], None]:
    """Return a callback for ``Subject.on_rows`` that raises OutOfTimeError after this monotonic time."""

    def on_rows(_rows: int) -> None:
        if time.monotonic() > deadline:
            raise OutOfTimeError

    return on_rows


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    check: str
    seconds: float
    findings: Sequence[Finding] = ()
    #: The reason why the check was skipped or interrupted; None if it completed.
    not_made: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """The results of all checks."""

    results: Sequence[CheckResult]

    @property
    def findings(self) -> list[tuple[str, Finding]]:
        """The findings, each with the name of its check, the worst first."""
        pairs = [(result.check, finding) for result in self.results for finding in result.findings]
        return sorted(pairs, key=lambda pair: -pair[1].severity)

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None without findings."""
        return max((finding.severity for _, finding in self.findings), default=None)


Run = Callable[[Check, Subject], CheckResult]


def examine(
    subject: Subject,
    checks: Iterable[Check],
    names: Collection[str] = (),
    skipped: Mapping[str, str] = MappingProxyType({}),
    run: Run | None = None,
) -> Examination:
    """Run the named checks, or all checks, and return their results.

    Args:
        skipped: The reasons for skipping checks, by check; a named check runs nevertheless.
        run: The function that runs one check; by default ``run_check``.

    Raises:
        Unavailable: The database does not respond.
    """
    run = run or run_check
    chosen = [check for check in checks if not names or check.name in names]
    no_tables = reason_without_tables(subject) if any(check.needs_tables for check in chosen) else ""
    results = []
    for check in chosen:
        if not names and check.name in skipped:
            results.append(CheckResult(check.name, 0.0, not_made=skipped[check.name]))
        elif check.needs_tables and no_tables:
            # If all checks run, the check of the revision reports the reason.
            findings = [warning(_NOT_MADE, (), _SEE_REVISION)] if names else []
            results.append(CheckResult(check.name, 0.0, findings, not_made=no_tables))
        else:
            results.append(run(check, subject))
    if signals.examined.connected:
        signals.examined(_counts(results))
    return Examination(results)


def _counts(results: Iterable[CheckResult]) -> dict[tuple[str, str], int]:
    """Return the number of findings of each completed check, by check and severity."""
    complete = [result for result in results if result.not_made is None]
    counts = {(result.check, severity.name.lower()): 0 for result in complete for severity in Severity}
    for result in complete:
        for finding in result.findings:
            counts[result.check, finding.severity.name.lower()] += 1
    return counts


def reason_without_tables(subject: Subject) -> str:
    """Return the reason why checks that need the tables cannot run, or an empty string."""
    database, engine = subject.database, subject.database.reading_engine
    try:
        with database.direct():
            # An unknown revision may belong to a newer version of this service, which only adds to the schema.
            served = schema.state(engine) in (schema.State.CURRENT, schema.State.UNKNOWN)
            if served and not schema.missing_columns(engine, extension.additions(subject.conf)):
                return ""
    except exc.DBAPIError as reason:
        raise retry.lost_server_failure(reason) from reason
    return "The database does not have the tables that this version requires: run the check 'revision'."


def run_check(check: Check, subject: Subject) -> CheckResult:
    """Run one check, and return its result; raise Unavailable if the database does not respond."""
    start = time.monotonic()
    findings: list[Finding] = []
    not_made = None
    try:
        subject.on_rows(0)
        findings += check.run(subject)
    except OutOfTimeError:
        not_made = "The time limit of the request was reached. placement-manage doctor has no limit."
    except NotMadeError as reason:
        not_made = str(reason)
    except exc.DBAPIError as reason:
        if driver_errors.classify(reason) is ErrorClass.LOST:
            raise retry.lost_server_failure(reason) from reason
        not_made = f"The database refused the check: {driver_errors.message(reason)}"
        findings.append(warning(_NOT_MADE))
    except errors.Failure:
        raise  # a failure of the request or the database, not of the check
    except Exception as reason:
        # Inconsistent data can break a check; the other checks still run.
        LOG.exception("The check %s failed", check.name)
        findings.append(error(f"This check failed: {type(reason).__name__}. The log contains the traceback."))
    return CheckResult(check.name, time.monotonic() - start, findings, not_made)
