"""Failures that only the API below /v1 has."""

from __future__ import annotations

from placement import errors

#: The code of a value that is not one of those that its field takes.
INVALID_FIELD = "placement.v1.invalid_field"


class NoSuchProvider(errors.NotFound):
    """The path names a provider that does not exist."""

    code = errors.PROVIDER_NOT_FOUND
    template = 'There is no provider or node "%(provider)s"'


class UnknownProvider(errors.InvalidCondition):
    """A parameter names a provider that does not exist."""

    code = errors.PROVIDER_NOT_FOUND
    violation = errors.Violation(
        "%(parameter)s", 'names "%(provider)s", which is no provider or node', "the uuid or the name of one"
    )
    template = f"{violation.field} {violation.problem}"


class InvalidField(errors.BadRequest):
    """A value conforms to the schema, but is not valid in its field: it contradicts another one, or names nothing.

    Args:
        violation: What is wrong with it.
    """

    code = INVALID_FIELD

    def __init__(self, violation: errors.Violation) -> None:
        super().__init__(reason=violation)
        self.is_about(violation)


# --- the history -----------------------------------------------------------------------------------------------------


class PositionLost(errors.Gone):
    """Events after a position cannot be read without a gap, or the position is none of this history."""

    code = "placement.v1.position_lost"
    template = (
        "The history has no such position: events after it were removed, or the database was restored to an earlier "
        "state. Read the present state anew, and go on from the position that after=now returns."
    )


class TimeUnknown(errors.Gone):
    """A state is asked for of a time before the oldest event."""

    code = "placement.v1.time_unknown"
    template = "The history does not reach back to that time: it begins with %(begins)s."


class TooManyChanges(errors.BadRequest):
    """A state is asked for of a time since which too much has changed."""

    code = "placement.v1.too_many_changes"
    template = (
        "There are more than %(most)d events since then, and one request undoes no more. Ask for a later time: that "
        "of %(reached)s takes a tenth less."
    )


class NothingKnown(errors.NotFound):
    """The path names nothing that is there, or of which the history has an event."""

    code = "placement.v1.nothing_known"
    template = "No provider, node or consumer %(object)s is there, and the history has no event of one."


# --- claims ----------------------------------------------------------------------------------------------------------


class NothingHeld(errors.NotFound):
    """The consumer whose claim is asked for has none, or the time of its lease is over."""

    code = "placement.v1.nothing_held"
    template = "Consumer %(consumer)s holds nothing, or the time of its lease is over."


class NoRoom(errors.Conflict):
    code = "placement.v1.no_room"
    template = "Nothing fits: %(reason)s"


class Undecided(errors.Conflict):
    """The search for a place reached its limit before it found one or could rule one out."""

    code = "placement.v1.undecided"
    template = (
        "The search was cut short before it found a place; there may be one ([placement]max_search_operations, "
        "max_search_memory)."
    )


class HeldOtherwise(errors.Conflict):
    """The consumer holds something that was not claimed by an equal request."""

    code = "placement.v1.held_otherwise"
    template = (
        "Consumer %(consumer)s holds something already, and not for an equal request. To give it another place, send "
        "keep: false with its generation."
    )


class NothingNamed(errors.BadRequest):
    """A release names neither consumers nor conditions, or both; or it has a limit without conditions."""

    template = (
        "A release names either consumers or conditions about them: at least one, and not both.  A limit is only for "
        "conditions."
    )


class NothingPlaced(errors.Conflict):
    """Another request of an ``all_or_nothing`` call was refused."""

    code = "placement.v1.nothing_placed"
    template = "Another request of this call was refused, and all of them were to be placed or none."
