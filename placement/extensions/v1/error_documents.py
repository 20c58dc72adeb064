"""The error documents of /v1: each error in one line, with the field that it is about (docs: v1-invalid)."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.extensions.v1.failures import INVALID_FIELD
from placement.http.error_list import ErrorList

#: Codes of Placement that say less than the code of a field.
_OF_QUERIES = (errors.UNDEFINED, errors.QUERY_DUPLICATE_KEY, errors.QUERY_BAD_VALUE, errors.QUERY_MISSING_VALUE)


class ErrorLines(ErrorList):
    """The form of errors of OpenStack's API guidelines, in which ``detail`` is nothing but the sentence."""

    def _error(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> dict[str, Any]:
        error = super()._error(failure, status, environ)
        if failure.field is not None:
            error["field"] = failure.field
        if failure.expected is not None:
            error["expected"] = failure.expected
            if failure.code in _OF_QUERIES:
                error["code"] = INVALID_FIELD
        return error

    def _detail(
        self, failure: errors.Failure, form: Callable[[str], str], status: HTTPStatus, _environ: WSGIEnvironment
    ) -> str:
        return form(failure.line) or status.phrase
