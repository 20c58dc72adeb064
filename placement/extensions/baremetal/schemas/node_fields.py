"""The fields of a node: first version, place of the value, type, and whether clients may write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placement.extensions.baremetal import versions as v
from placement.extensions.baremetal.versions import Version
from placement.schemas.declarations import ANYTHING, Scalar, SchemaType, nullable, string

TEXT = nullable(string(maxLength=255))
LONG_TEXT = nullable(string(maxLength=4096))
MAPPING = Scalar("object", {}, nullable=True)
BOOLEAN = Scalar("boolean", {}, nullable=True)


@dataclass(frozen=True, slots=True)
class NodeField:
    """A field in the document of a node."""

    name: str
    since: Version = v.INITIAL
    #: Type in a request; None for a field written only by the service.
    type: SchemaType | None = None
    #: The value shown if no value is stored.
    default: Any = None
    #: Whether POST and PATCH may write a field with a type.
    create: bool = True
    update: bool = True
    #: Whether the value is in ``details`` rather than in a column or the provider.
    detail: bool = True
    #: Whether the value is a boolean, which requests may state as a word.
    boolean: bool = False


def _column(
    name: str, since: Version = v.INITIAL, request_type: SchemaType | None = None, **attributes: Any
) -> NodeField:
    return NodeField(name, since, request_type, detail=False, **attributes)


def _mapping(name: str, since: Version = v.INITIAL, request_type: SchemaType | None = None) -> NodeField:
    return NodeField(name, since, request_type, {})


def _boolean(name: str, since: Version, default: bool | None = False, **attributes: Any) -> NodeField:
    return NodeField(name, since, ANYTHING, default, boolean=True, **attributes)


def _interface_field(kind: str, since: Version = v.INTERFACES) -> NodeField:
    return NodeField(f"{kind}_interface", since, TEXT)


_ALL = (
    _column("uuid", request_type=nullable(string()), update=False),
    _column("created_at"),
    _column("updated_at"),
    _column("name", v.NODE_NAMES, nullable(string())),
    _column("driver", request_type=string(maxLength=255)),
    _column("resource_class", v.RESOURCE_CLASS, nullable(string(maxLength=80))),
    _column("owner", v.NODE_OWNER, TEXT),
    _column("lessee", v.NODE_LESSEE, TEXT),
    _column("parent_node", v.PARENT_NODE, nullable(string())),
    _column("provision_state"),
    _column("target_provision_state"),
    _column("provision_updated_at"),
    _column("power_state"),
    _column("target_power_state"),
    _column("maintenance", request_type=ANYTHING, boolean=True, default=False),
    _column("instance_uuid", request_type=nullable(string())),
    _column("allocation_uuid", v.ALLOCATIONS),
    _column("traits", v.TRAITS),
    _mapping("properties", request_type=MAPPING),
    _mapping("extra", request_type=MAPPING),
    _mapping("driver_info", request_type=MAPPING),
    _mapping("driver_internal_info", v.DRIVER_INTERNAL_INFO),
    _mapping("instance_info", request_type=MAPPING),
    NodeField("instance_name", v.INSTANCE_NAME, TEXT),
    NodeField("description", v.DESCRIPTION, LONG_TEXT),
    NodeField("maintenance_reason"),
    NodeField("fault", v.FAULT),
    NodeField("last_error"),
    NodeField("reservation"),
    _boolean("protected", v.PROTECTED, create=False),
    NodeField("protected_reason", v.PROTECTED, LONG_TEXT, create=False),
    _boolean("retired", v.RETIRED),
    NodeField("retired_reason", v.RETIRED, LONG_TEXT),
    _boolean("automated_clean", v.AUTOMATED_CLEAN, None),
    _boolean("disable_power_off", v.DISABLE_POWER_OFF),
    _boolean("console_enabled", v.INITIAL, update=False),
    NodeField("conductor", v.CONDUCTOR),
    NodeField("conductor_group", v.CONDUCTOR_GROUP, TEXT, ""),
    NodeField("shard", v.SHARD, TEXT),
    NodeField("chassis_uuid", type=nullable(string())),
    NodeField("boot_mode", v.BOOT_MODE),
    NodeField("secure_boot", v.BOOT_MODE),
    NodeField("health", v.HEALTH),
    NodeField("inspection_started_at", v.INSPECTION),
    NodeField("inspection_finished_at", v.INSPECTION),
    _mapping("clean_step", v.CLEAN_STEP),
    _mapping("deploy_step", v.DEPLOY_STEP),
    _mapping("service_step", v.SERVICE_STEP),
    _mapping("raid_config", v.RAID),
    _mapping("target_raid_config", v.RAID),
    _mapping("network_data", v.NETWORK_DATA, MAPPING),
    *(
        _interface_field(kind)
        for kind in ("boot", "console", "deploy", "inspect", "management", "power", "raid", "vendor")
    ),
    _interface_field("network", v.NETWORK_INTERFACE),
    _interface_field("storage", v.STORAGE_INTERFACE),
    _interface_field("rescue", v.RESCUE_INTERFACE),
    _interface_field("bios", v.BIOS_INTERFACE),
    _interface_field("firmware", v.FIRMWARE_INTERFACE),
    _column("states", v.NODE_STATES_LINK),
    _column("links"),
)
FIELDS: Mapping[str, NodeField] = {field.name: field for field in _ALL}
#: Fields in a list by default, besides the links.
SHORT = ("uuid", "name", "instance_uuid", "maintenance", "power_state", "provision_state")
#: Fields that PATCH can write.
UPDATABLE = tuple(field.name for field in _ALL if field.type is not None and field.update)
#: The field in every document.
LINKS = "links"


def visible_fields(version: Version) -> list[str]:
    """Return the names of the fields in this version."""
    return [field.name for field in _ALL if field.since <= version]
