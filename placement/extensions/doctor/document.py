"""An examination as a JSON document: of ``GET /v1/doctor``, and of ``placement-manage doctor --json``."""

from __future__ import annotations

from typing import Any

from placement.extensions.doctor.examination import Examination


def document(examination: Examination, most: int | None = None) -> dict[str, Any]:
    """Return the document.

    Args:
        most: The most places of a finding that are shown; None for all.
    """
    return {
        "findings": [
            {
                "severity": finding.severity.name.lower(),
                "check": check,
                "what": finding.what,
                "count": len(finding.where),
                "where": list(finding.where[:most]),
                "fix": finding.fix,
                "fixable": finding.fixable,
            }
            for check, finding in examination.findings
        ],
        "checks": [
            {"name": result.check, "seconds": round(result.seconds, 3), "not_made": result.not_made}
            for result in examination.results
        ],
    }
