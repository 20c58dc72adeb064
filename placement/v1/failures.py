"""Failures that only the API below /v1 has."""

from __future__ import annotations

from placement import errors


class NoSuchProvider(errors.NotFound):
    """The path names a provider that does not exist."""

    code = errors.PROVIDER_NOT_FOUND
    template = "No resource provider with uuid or name %(provider)s found"


class UnknownProvider(errors.BadRequest):
    """A parameter names a provider that does not exist."""

    code = errors.PROVIDER_NOT_FOUND
    template = "The parameter %(parameter)s names no resource provider by uuid or name: %(provider)s"


class InvalidMark(errors.BadRequest):
    """A page of a list is asked for by a mark of a list with another order."""

    template = "The parameter after is no mark of a list in this order: %(after)s"


class InvalidDate(errors.BadRequest):
    template = "The parameter %(parameter)s is no date: %(value)s"
