"""Failures of the v1 API."""

from __future__ import annotations

from placement import errors

#: The code of a value that is invalid in its field.
INVALID_FIELD = "placement.v1.invalid_field"


class NoSuchProvider(errors.NotFound):
    """The path names a provider that does not exist."""

    code = errors.PROVIDER_NOT_FOUND
    template = 'There is no provider or node "%(provider)s"'


class UnknownProvider(errors.InvalidCondition):
    """A parameter names a provider that does not exist."""

    code = errors.PROVIDER_NOT_FOUND
    violation = errors.Violation(
        "%(parameter)s", 'names "%(provider)s", which is not a provider or node', "the uuid or the name of one"
    )
    template = f"{violation.field} {violation.problem}"


class InvalidField(errors.BadRequest):
    """A value that the schema allows is invalid in this request: it contradicts another value, or matches nothing.

    Args:
        violation: The field, the problem and the expected value.
    """

    code = INVALID_FIELD

    def __init__(self, violation: errors.Violation) -> None:
        super().__init__(reason=violation)
        self.set_violation(violation)


# --- the history -----------------------------------------------------------------------------------------------------


class PositionLost(errors.Gone):
    """Events after a position cannot be read without a gap, or the position is not part of this history."""

    code = "placement.v1.position_lost"
    template = (
        "The history has no such position: events after it were removed, or the database was restored to an earlier "
        "state. Read the current state, then continue from the position that after=now returns."
    )


class TimeUnknown(errors.Gone):
    """The time of a requested state is before the oldest event."""

    code = "placement.v1.time_unknown"
    template = "The history does not reach back to that time; its oldest event: %(begins)s."


class TooManyChanges(errors.BadRequest):
    """Too much has changed since the time of a requested state."""

    code = "placement.v1.too_many_changes"
    template = (
        "More than %(maximum)d events have been recorded since that time, the limit for one request. Ask for a later "
        "time, such as %(reached)s."
    )


class NothingKnown(errors.NotFound):
    """The path names an object that does not exist and has no event in the history."""

    code = "placement.v1.nothing_known"
    template = "There is no provider, node or consumer %(object)s, and the history records no events of it."


# --- claims ----------------------------------------------------------------------------------------------------------


class NothingHeld(errors.NotFound):
    """The consumer has no claim, or its lease has expired."""

    code = "placement.v1.nothing_held"
    template = "Consumer %(consumer)s holds nothing, or its lease has expired."


class NoRoom(errors.Conflict):
    """No place fits the consumer."""

    code = "placement.v1.no_room"
    template = "Nothing fits: %(reason)s"


class Undecided(errors.Conflict):
    """The search for a place reached its limit before it found a place or ruled out all of them."""

    code = "placement.v1.undecided"
    template = (
        "The search reached its limit before it found a place; there may be one ([placement]max_search_operations, "
        "max_search_memory)."
    )


class HeldOtherwise(errors.Conflict):
    """The consumer holds resources that were not claimed by an equal entry."""

    code = "placement.v1.held_otherwise"
    template = (
        "Consumer %(consumer)s already holds resources that an equal entry did not claim. To replace them, send "
        "keep: false with its generation."
    )


class NothingNamed(errors.BadRequest):
    """A release names neither consumers nor conditions, or both, or has a limit without conditions."""

    template = (
        "A release names either consumers or conditions: at least one, but not both. A limit requires conditions."
    )


class NothingPlaced(errors.Conflict):
    """Another entry of an ``all_or_nothing`` request was refused."""

    code = "placement.v1.nothing_placed"
    template = "Another entry of this request was refused; with all_or_nothing, none is placed."
