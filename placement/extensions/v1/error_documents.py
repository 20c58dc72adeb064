"""Error documents of the v1 API: one line per error, with the field at fault (docs: v1-invalid)."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.extensions.v1.failures import INVALID_FIELD
from placement.http.error_list import ErrorList

#: Codes of Placement that are less specific than ``INVALID_FIELD``.
_QUERY_CODES = (errors.UNDEFINED, errors.QUERY_DUPLICATE_KEY, errors.QUERY_BAD_VALUE, errors.QUERY_MISSING_VALUE)


class ErrorLines(ErrorList):
    """Errors in the form of the OpenStack API guidelines, with a single sentence in ``detail``."""

    def _error(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> dict[str, Any]:
        error = super()._error(failure, status, environ)
        if failure.field is not None:
            error["field"] = failure.field
        if failure.expected is not None:
            error["expected"] = failure.expected
            if failure.code in _QUERY_CODES:
                error["code"] = INVALID_FIELD
        return error

    def _detail(
        self, failure: errors.Failure, form: Callable[[str], str], status: HTTPStatus, _environ: WSGIEnvironment
    ) -> str:
        return form(failure.line) or status.phrase
