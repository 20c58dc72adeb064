"""Query parameters: unknown parameters are refused, and only ``fields`` may be repeated."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from placement import errors
from placement.extensions.baremetal.objects.keyset import Paging
from placement.uuids import is_uuid

#: Maximum and default number of items on a page.
MAX_LIMIT = 1000
#: Parameters of every paged list.
PAGING = ("fields", "limit", "marker", "sort_key", "sort_dir")
#: Maximum number of digits of a limit, within the integers of databases.
_MAX_DIGITS = 18


class UnexpectedArguments(errors.BadRequest):
    template = "Unexpected arguments: %(names)s"


class RepeatedArgument(errors.BadRequest):
    template = "The argument %(name)s may be given only once"


class InvalidLimit(errors.BadRequest):
    template = "Expected an integer for limit: %(limit)s"


class LimitNotPositive(errors.BadRequest):
    template = "Limit must be positive"


class InvalidMarker(errors.BadRequest):
    template = "Expected a UUID for marker: %(marker)s"


class InvalidSortKey(errors.BadRequest):
    template = 'The sort_key value "%(key)s" is an invalid field for sorting'


class InvalidSortDirection(errors.BadRequest):
    template = "Expected asc or desc for sort_dir: %(direction)s"


class InvalidFields(errors.BadRequest):
    template = "Field(s) %(names)s are not valid"


class Arguments:
    """The parameters of one request."""

    def __init__(self, pairs: Iterable[tuple[str, str]], valid_names: Collection[str] = ()) -> None:
        """Group the values by name.

        Args:
            pairs: Names and values, in order.
            valid_names: Names of the parameters of the route.

        Raises:
            UnexpectedArguments, RepeatedArgument: A parameter is unknown or repeated.
        """
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)
        unknown = sorted(self._values.keys() - set(valid_names))
        if unknown:
            raise UnexpectedArguments(names=", ".join(unknown))
        for name, values in self._values.items():
            if len(values) > 1 and name != "fields":
                raise RepeatedArgument(name=name)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is missing."""
        values = self._values.get(name)
        return None if values is None else values[0]

    def values_of(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values of these parameters, by name; parameters missing from the query are left out."""
        return {name: self._values[name][0] for name in names if name in self._values}

    def fields(self, valid_names: Collection[str]) -> tuple[str, ...] | None:
        """Return the names of the requested fields without duplicates; None for all fields.

        Spaces around names and empty names are ignored.

        Raises:
            InvalidFields: A name is not a field.
        """
        if "fields" not in self._values:
            return None
        stripped_names = (name.strip() for value in self._values["fields"] for name in value.split(","))
        names = dict.fromkeys(name for name in stripped_names if name)
        unknown = sorted(names.keys() - set(valid_names))
        if unknown:
            raise InvalidFields(names=", ".join(f'"{name}"' for name in unknown))
        return tuple(names)

    def paging(self, sort_keys: Collection[str]) -> Paging:
        """Return the requested page.

        Args:
            sort_keys: Keys by which the list can be sorted; the default is ``id``, the order of creation.

        Raises:
            BadRequest: A value is invalid.
        """
        marker, direction = self.get("marker"), self.get("sort_dir") if "sort_dir" in self else "asc"
        if marker is not None and not is_uuid(marker):
            raise InvalidMarker(marker=marker)
        if direction not in ("asc", "desc"):
            raise InvalidSortDirection(direction=direction)
        sort_key = self.get("sort_key") or "id"
        if sort_key not in sort_keys:
            raise InvalidSortKey(key=sort_key)
        return Paging(self._limit(), marker, sort_key, direction == "desc")

    def _limit(self) -> int:
        limit = self.get("limit")
        if limit is None:
            return MAX_LIMIT
        digits = limit.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS):
            raise InvalidLimit(limit=limit)
        if int(limit) <= 0:
            raise LimitNotPositive()
        return min(int(limit), MAX_LIMIT)
