"""The JSON document of an examination, for ``GET /v1/doctor`` and ``placement-manage doctor --json``."""

from __future__ import annotations

from typing import Any

from placement.extensions.doctor.examination import Examination


def document(examination: Examination, max_places: int | None = None) -> dict[str, Any]:
    """Return the document of an examination.

    Args:
        max_places: Places shown of each finding; None for all.
    """
    return {
        "findings": [
            {
                "severity": finding.severity.name.lower(),
                "check": check,
                "what": finding.what,
                "count": len(finding.where),
                "where": list(finding.where[:max_places]),
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
