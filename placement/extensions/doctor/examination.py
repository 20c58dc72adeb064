"""An examination: checks are run one after the other, and each has a result."""

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
#: The command that mends what is safe to mend.
FIX = "placement-manage doctor --fix --yes"
#: What is found by a check that could have been made, and was not.
_NOT_MADE = "This check could not be made."
_SEE_REVISION = "placement-manage doctor --check revision"


class OutOfTimeError(Exception):
    """Raised in a check when the time of the examination is over."""


def until(deadline: float) -> Callable[[int], None]:
    """Return the ``examined`` of a subject whose examination ends at this time, by the monotonic clock."""

    def examined(_rows: int) -> None:
        if time.monotonic() > deadline:
            raise OutOfTimeError

    return examined


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of one check."""

    check: str
    seconds: float
    findings: Sequence[Finding] = ()
    #: Why it was not made, or not to its end; None if it was.
    not_made: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """What became of all checks."""

    results: Sequence[CheckResult]

    @property
    def findings(self) -> list[tuple[str, Finding]]:
        """The findings with the names of their checks, the worst first."""
        found = [(result.check, finding) for result in self.results for finding in result.findings]
        return sorted(found, key=lambda pair: -pair[1].severity)

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None if there is none."""
        return max((finding.severity for _, finding in self.findings), default=None)


Run = Callable[[Check, Subject], CheckResult]


def examine(
    subject: Subject,
    checks: Iterable[Check],
    named: Collection[str] = (),
    left_out: Mapping[str, str] = MappingProxyType({}),
    run: Run | None = None,
) -> Examination:
    """Run the checks of these names, or all, and return what became of them.

    Args:
        left_out: Why a check is not made, by its name, unless it is among the names.
        run: Runs a check, by ``run_check``.

    Raises:
        Unavailable: The database does not answer.
    """
    run = run or run_check
    chosen = [check for check in checks if not named or check.name in named]
    missing = lacking(subject) if any(check.needs_tables for check in chosen) else ""
    results = []
    for check in chosen:
        if not named and check.name in left_out:
            results.append(CheckResult(check.name, 0.0, not_made=left_out[check.name]))
        elif check.needs_tables and missing:
            # Who asks for all checks finds the reason among the findings.
            findings = [warning(_NOT_MADE, (), _SEE_REVISION)] if named else []
            results.append(CheckResult(check.name, 0.0, findings, not_made=missing))
        else:
            results.append(run(check, subject))
    if signals.examined.connected:
        signals.examined(_counts(results))
    return Examination(results)


def _counts(results: Iterable[CheckResult]) -> dict[tuple[str, str], int]:
    """Return the numbers of findings by check and severity; what a check has found that was not made says little."""
    made = [result for result in results if result.not_made is None]
    counts = {(result.check, severity.name.lower()): 0 for result in made for severity in Severity}
    for result in made:
        for finding in result.findings:
            counts[result.check, finding.severity.name.lower()] += 1
    return counts


def lacking(subject: Subject) -> str:
    """Return why checks that need the tables cannot be made; empty if they can."""
    database, engine = subject.database, subject.database.reading_engine
    try:
        with database.direct():
            # Unknown ones may be of a newer version of this service, which only adds to the schema.
            served = schema.state(engine) in (schema.State.CURRENT, schema.State.UNKNOWN)
            if served and not schema.lacking(engine, extension.additions(subject.conf)):
                return ""
    except exc.DBAPIError as reason:
        raise retry.unavailable(reason) from reason
    return "The database does not have the tables of this program: see the check revision."


def run_check(check: Check, subject: Subject) -> CheckResult:
    """Run one check; raises Unavailable."""
    began = time.monotonic()
    findings: list[Finding] = []
    not_made = None
    try:
        subject.on_rows(0)
        findings += check.run(subject)
    except OutOfTimeError:
        not_made = "The time of the request is over. placement-manage doctor has no limit."
    except NotMadeError as reason:
        not_made = str(reason)
    except exc.DBAPIError as reason:
        if driver_errors.classify(reason) is ErrorClass.LOST:
            raise retry.unavailable(reason) from reason
        not_made = f"The database refuses it: {driver_errors.message(reason)}"
        findings.append(warning(_NOT_MADE))
    except errors.Failure:
        raise  # of the request, or of the database
    except Exception as reason:
        # What is examined is wrong in some way: the other checks still say what they find.
        LOG.exception("The check %s has failed", check.name)
        findings.append(error(f"This check has failed: {type(reason).__name__}. The log has the reason."))
    return CheckResult(check.name, time.monotonic() - began, findings, not_made)
