"""The Bare Metal API: its route table, path -> {method: endpoint}, and its ``Api`` value.

The layer ``Spellings`` normalizes paths to the paths in the table.
"""

from __future__ import annotations

from placement.extensions.baremetal import policy, versions
from placement.extensions.baremetal.error_documents import Envelope
from placement.extensions.baremetal.handlers import allocation, driver, node, root, state, trait
from placement.extensions.baremetal.spellings import Spellings
from placement.extensions.baremetal.versioning import IronicVersions
from placement.http.api import Api, Table

TABLE: Table = {
    "/": {"GET": root.show},
    "/v1": {"GET": root.show_v1},
    "/v1/allocations": {"GET": allocation.list_allocations, "POST": allocation.create},
    "/v1/allocations/{allocation}": {
        "GET": allocation.show,
        "PATCH": allocation.update,
        "DELETE": allocation.delete,
    },
    "/v1/drivers": {"GET": driver.list_drivers},
    "/v1/nodes": {"GET": node.list_nodes, "POST": node.create},
    "/v1/nodes/detail": {"GET": node.list_details},
    "/v1/nodes/{node}": {"GET": node.show, "PATCH": node.update, "DELETE": node.delete},
    "/v1/nodes/{node}/allocation": {"GET": allocation.show_of_node, "DELETE": allocation.delete_of_node},
    "/v1/nodes/{node}/allocation/{below:.*}": {},
    "/v1/nodes/{node}/maintenance": {"PUT": state.set_maintenance, "DELETE": state.clear_maintenance},
    "/v1/nodes/{node}/states": {"GET": state.show},
    "/v1/nodes/{node}/states/power": {"PUT": state.set_power},
    "/v1/nodes/{node}/states/provision": {"PUT": state.set_provision},
    "/v1/nodes/{node}/traits": {"GET": trait.list_traits, "PUT": trait.replace, "DELETE": trait.clear},
    "/v1/nodes/{node}/traits/{trait}": {"PUT": trait.add, "DELETE": trait.remove},
    "/v1/nodes/{node}/validate": {"GET": state.validate},
}

BAREMETAL = Api(
    name=versions.SERVICE_TYPE,
    prefix="/baremetal",
    routes=TABLE,
    versioning=IronicVersions(),
    error_documents=Envelope(),
    open_paths=frozenset({"/", "/v1", "/v1/"}),
    rules=policy.RULES,
    layers=(Spellings,),
    anonymous_is_admin=True,
    strict_bodies=False,
)
