"""Versions of the Bare Metal API that differ in this service, and their range (docs: baremetal-versions).

Every version in the range is accepted, as by Ironic; a version without a name equals its predecessor.
"""

from __future__ import annotations

from placement.version_history import History
from placement.version_history import Version as Version

SERVICE_TYPE = "baremetal"
HISTORY = History(SERVICE_TYPE)

INITIAL = HISTORY.add(1, 1, "Nodes and drivers.")
AVAILABLE_STATE = HISTORY.add(
    1, 2, "The state of a node that can be used is named ``available``; before this version, it is null."
)
DRIVER_INTERNAL_INFO = HISTORY.add(1, 3, "Nodes show driver_internal_info.")
NODE_NAMES = HISTORY.add(1, 5, "Nodes have names.")
INSPECTION = HISTORY.add(1, 6, "Nodes show when they were inspected.")
CLEAN_STEP = HISTORY.add(1, 7, "Nodes show clean_step.")
FIELDS = HISTORY.add(1, 8, "The fields of nodes in a response can be selected: fields.")
ENROLL = HISTORY.add(1, 11, "New nodes are in the state ``enroll``; before this version, ``available``.")
RAID = HISTORY.add(1, 12, "Nodes show raid_config and target_raid_config.")
NODE_STATES_LINK = HISTORY.add(1, 14, "Nodes link to their states.")
DRIVER_FILTER = HISTORY.add(1, 16, "Lists of nodes can be filtered by driver.")
NETWORK_INTERFACE = HISTORY.add(1, 20, "Nodes have a network_interface.")
RESOURCE_CLASS = HISTORY.add(1, 21, "Nodes have a resource class.")
SOFT_POWER = HISTORY.add(1, 27, "The power of a node can be changed softly, and with a timeout.")
DRIVER_TYPES = HISTORY.add(1, 30, "Drivers have a type.")
INTERFACES = HISTORY.add(1, 31, "Nodes have an interface for each kind of work, such as boot_interface.")
STORAGE_INTERFACE = HISTORY.add(1, 33, "Nodes have a storage_interface.")
TRAITS = HISTORY.add(1, 37, "Nodes have traits.")
RESCUE_INTERFACE = HISTORY.add(1, 38, "Nodes have a rescue_interface.")
BIOS_INTERFACE = HISTORY.add(1, 40, "Nodes have a bios_interface.")
FAULT = HISTORY.add(1, 42, "Nodes have a fault, and lists can be filtered by it.")
DETAIL = HISTORY.add(1, 43, "Lists of nodes can show every field: detail.")
DEPLOY_STEP = HISTORY.add(1, 44, "Nodes show deploy_step.")
CONDUCTOR_GROUP = HISTORY.add(1, 46, "Nodes have a conductor_group.")
AUTOMATED_CLEAN = HISTORY.add(1, 47, "Nodes have automated_clean.")
PROTECTED = HISTORY.add(1, 48, "Nodes can be protected.")
CONDUCTOR = HISTORY.add(1, 49, "Nodes show their conductor; here they have none.")
NODE_OWNER = HISTORY.add(1, 50, "Nodes have an owner.")
DESCRIPTION = HISTORY.add(1, 51, "Nodes have a description.")
ALLOCATIONS = HISTORY.add(1, 52, "Allocations: the service chooses a node.")
UPDATE_ALLOCATIONS = HISTORY.add(1, 57, "The name and extra of an allocation can be changed.")
BACKFILL = HISTORY.add(1, 58, "An allocation can be created for a node that is already in use.")
ALLOCATION_OWNER = HISTORY.add(1, 60, "Allocations have an owner.")
RETIRED = HISTORY.add(1, 61, "Nodes can be retired.")
NODE_LESSEE = HISTORY.add(1, 65, "Nodes have a lessee.")
NETWORK_DATA = HISTORY.add(1, 66, "Nodes have network_data.")
DEPLOY = HISTORY.add(1, 73, "The targets ``deploy`` and ``undeploy`` are aliases of ``active`` and ``deleted``.")
BOOT_MODE = HISTORY.add(1, 75, "Nodes show boot_mode and secure_boot.")
DRIVER_FIELDS = HISTORY.add(1, 77, "The fields of drivers in a response can be selected: fields.")
NAME_AFFINITY = HISTORY.add(1, 79, "The node with the name of the allocation is tried first; here in every version.")
SHARD = HISTORY.add(1, 82, "Nodes have a shard.")
PARENT_NODE = HISTORY.add(1, 83, "Nodes can have a parent node; lists contain such nodes only on request.")
FIRMWARE_INTERFACE = HISTORY.add(1, 86, "Nodes have a firmware_interface.")
SERVICE_STEP = HISTORY.add(1, 87, "Nodes show service_step.")
NO_SUFFIX = HISTORY.add(1, 91, "The suffix ``.json`` of a path is not ignored.")
DISABLE_POWER_OFF = HISTORY.add(1, 95, "Nodes have disable_power_off.")
POINTER_ESCAPES = HISTORY.add(1, 98, "Paths of a PATCH may contain ``~0`` and ``~1``.")
INSTANCE_NAME = HISTORY.add(1, 104, "Nodes have an instance_name.")
HEALTH = HISTORY.add(1, 109, "Nodes show their health; here it is unknown.")
NEWEST = HISTORY.add(1, 115, "The newest version that is accepted.")

MINIMUM = HISTORY.minimum
LATEST = HISTORY.latest
