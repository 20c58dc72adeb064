"""/v1/nodes, /v1/nodes/detail: queries of lists, and the selection of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from placement import errors
from placement.extensions.baremetal import versions
from placement.extensions.baremetal.failures import NotInThisVersion
from placement.extensions.baremetal.objects import states
from placement.extensions.baremetal.objects.keyset import Paging
from placement.extensions.baremetal.objects.node_page import COLUMNS, NodeFilter
from placement.extensions.baremetal.schemas.node import InvalidNodeValue, NoChassis, check_visible, truth, uuid_of
from placement.extensions.baremetal.schemas.node_fields import FIELDS, SHORT, visible_fields
from placement.extensions.baremetal.schemas.query import PAGING, Arguments
from placement.extensions.baremetal.versions import Version


class InvalidProvisionState(errors.BadRequest):
    template = 'Provision state "%(state)s" is not valid'


class UnknownFault(errors.BadRequest):
    template = f'Unrecognized fault "%(fault)s" is specified, allowed faults are {", ".join(states.FAULTS)}'


class FieldsWithDetail(errors.BadRequest):
    template = "Can not specify ?detail=True and fields in the same request."


_SORTABLE = {
    "id",
    *(COLUMNS.keys() - {"details", "allocation_uuid"}),
    *("description", "fault", "conductor_group", "shard", "instance_name", "last_error", "maintenance_reason"),
    *("automated_clean", "protected", "retired", "reservation"),
}
#: Filters of a list, and the first version of each.
FILTERS = {
    "instance_uuid": versions.INITIAL,
    "associated": versions.INITIAL,
    "maintenance": versions.INITIAL,
    "provision_state": Version(1, 9),
    "driver": versions.DRIVER_FILTER,
    "resource_class": versions.RESOURCE_CLASS,
    "fault": versions.FAULT,
    "conductor_group": versions.CONDUCTOR_GROUP,
    "conductor": versions.CONDUCTOR,
    "owner": versions.NODE_OWNER,
    "description_contains": versions.INITIAL,
    "project": versions.INITIAL,
    "retired": versions.INITIAL,
    "lessee": versions.NODE_LESSEE,
    "shard": versions.SHARD,
    "sharded": versions.SHARD,
    "parent_node": versions.PARENT_NODE,
    "include_children": versions.PARENT_NODE,
    "instance_name": versions.INSTANCE_NAME,
    "chassis_uuid": versions.INITIAL,
}
LIST_DETAIL = (*FILTERS, *(name for name in PAGING if name != "fields"))
LIST = (*FILTERS, *PAGING, "detail")
SHOW = ("fields",)
#: Parameters repeated unchanged in the link to the next page.
REPEATED = (*FILTERS, "detail")


def shown_fields(arguments: Arguments, version: Version, default: Sequence[str]) -> Sequence[str]:
    """Return the names of the fields to show: in the query, or else the default fields that the version supports.

    Raises:
        NotInThisVersion: The query names a field added in a later version.
        InvalidFields: The query names an unknown field.
    """
    if "fields" in arguments and version < versions.FIELDS:
        raise NotInThisVersion()
    names = arguments.fields(FIELDS)
    if names is None:
        return [name for name in default if FIELDS[name].since <= version]
    check_visible(names, version)
    return names


def listed_fields(arguments: Arguments, version: Version) -> Sequence[str]:
    """Return the names of the fields in a list.

    Raises:
        BadRequest: The query selects fields in two ways, or unknown fields.
    """
    if "detail" in arguments and truth("detail", arguments.get("detail")):
        if version < versions.DETAIL:
            raise InvalidNodeValue(name="query parameter", reason="?detail=True")
        if "fields" in arguments:
            raise FieldsWithDetail()
        return visible_fields(version)
    return shown_fields(arguments, version, SHORT)


def paging(arguments: Arguments, version: Version) -> Paging:
    """Return the page that a query requests.

    Raises:
        NotInThisVersion: A filter or sort key was added in a later version.
    """
    if any(version < FILTERS[name] for name in arguments.values_of(FILTERS)):
        raise NotInThisVersion()
    page = arguments.paging(_SORTABLE)
    check_visible([page.sort_key], version)
    return page


def columns_of(names: Sequence[str]) -> list[str]:
    """Return the columns needed for these fields."""
    details = ["details"] if any(FIELDS[name].detail for name in names) else []
    return [*dict.fromkeys(("uuid", *(name for name in names if name in COLUMNS), *details))]


def node_filter(arguments: Arguments, project: str | None) -> NodeFilter:
    """Return the filter in a query.

    Args:
        project: The only project whose nodes the caller may list; None for all nodes.
    """

    def value_of(name: str, convert: Callable[[str, str], Any]) -> Any:
        value = arguments.get(name)
        return None if value is None else convert(name, value)

    if (chassis := value_of("chassis_uuid", uuid_of)) is not None:
        raise NoChassis(uuid=chassis)
    columns: dict[str, Any] = dict(arguments.values_of(_COLUMN_FILTERS))
    if "maintenance" in arguments:
        columns["maintenance"] = value_of("maintenance", truth)
    if columns.get("provision_state", states.ENROLL) not in states.ALL:
        raise InvalidProvisionState(state=columns["provision_state"])
    if (fault := arguments.get("fault")) is not None and fault not in states.FAULTS:
        raise UnknownFault(fault=fault)
    return NodeFilter(
        columns=columns,
        details=_details(arguments),
        presence={
            _PRESENCE_FILTERS[parameter]: truth(parameter, value)
            for parameter, value in arguments.values_of(_PRESENCE_FILTERS).items()
        },
        instance_uuid=value_of("instance_uuid", uuid_of),
        associated=value_of("associated", truth),
        description_contains=arguments.get("description_contains"),
        projects=[name for name in (project, arguments.get("project")) if name is not None],
        include_children="parent_node" in arguments or bool(value_of("include_children", truth)),
    )


_COLUMN_FILTERS = ("provision_state", "driver", "resource_class", "owner", "lessee", "parent_node")
#: Names in ``details`` that must be set or unset, by parameter.
_PRESENCE_FILTERS = {"retired": "retired", "sharded": "shard"}


def _details(arguments: Arguments) -> dict[str, Sequence[str | None]]:
    """Return the filters of values in ``details``; a node without a conductor group is in the group ""."""
    filters: dict[str, Sequence[str | None]] = {
        name: [value] for name, value in arguments.values_of(("fault", "conductor", "instance_name")).items()
    }
    if (group := arguments.get("conductor_group")) is not None:
        filters["conductor_group"] = [group.lower()] if group else [group, None]
    if (shards := arguments.get("shard")) is not None:
        filters["shard"] = shards.split(",")
    return filters
