"""The Placement API: its route table, path -> {method: endpoint}, and its ``Api`` value.

The response to a path that is not in the table is 404.  The response to a method that its path lacks is 405, with the
methods of the path in Allow, in this order.  A method whose meaning has changed lists its endpoints oldest first.
"""

from __future__ import annotations

from placement import microversion as mv
from placement.handlers import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    provider,
    reshaper,
    resource_class,
    root,
    trait,
    usage,
)
from placement.http.api import Api, Table
from placement.http.error_list import ErrorList
from placement.policy import rules

TABLE: Table = {
    "/": {"GET": root.show},
    "/resource_classes": {
        "GET": resource_class.list_classes,
        "POST": resource_class.create,
    },
    "/resource_classes/{name}": {
        "GET": resource_class.show,
        "PUT": (resource_class.update, resource_class.ensure),
        "DELETE": resource_class.delete,
    },
    "/resource_providers": {
        "GET": provider.list_providers,
        "POST": provider.create,
    },
    "/resource_providers/{uuid}": {
        "GET": provider.show,
        "DELETE": provider.delete,
        "PUT": provider.update,
    },
    "/resource_providers/{uuid}/inventories": {
        "GET": inventory.list_inventories,
        "POST": inventory.create,
        "PUT": inventory.replace,
        "DELETE": inventory.delete_all,
    },
    "/resource_providers/{uuid}/inventories/{resource_class}": {
        "GET": inventory.show,
        "PUT": inventory.update,
        "DELETE": inventory.delete,
    },
    "/resource_providers/{uuid}/usages": {"GET": usage.of_provider},
    "/resource_providers/{uuid}/aggregates": {
        "GET": aggregate.list_aggregates,
        "PUT": aggregate.replace,
    },
    "/resource_providers/{uuid}/allocations": {"GET": allocation.of_provider},
    "/resource_providers/{uuid}/traits": {
        "GET": trait.of_provider,
        "PUT": trait.replace,
        "DELETE": trait.clear,
    },
    "/allocations": {"POST": allocation.create},
    "/allocations/{consumer_uuid}": {
        "GET": allocation.show,
        "PUT": allocation.replace,
        "DELETE": allocation.delete,
    },
    "/allocation_candidates": {"GET": allocation_candidate.list_candidates},
    "/traits": {"GET": trait.list_traits},
    "/traits/{name}": {
        "GET": trait.show,
        "PUT": trait.ensure,
        "DELETE": trait.delete,
    },
    "/usages": {"GET": usage.of_project},
    "/reshaper": {"POST": reshaper.create},
}

PLACEMENT = Api(
    name=mv.SERVICE_TYPE,
    routes=TABLE,
    versioning=mv.HISTORY,
    error_documents=ErrorList(mv.MINIMUM, mv.LATEST, codes_since=mv.ERROR_CODES),
    rules=rules.RULES,
    cache_headers_since=mv.CACHE_HEADERS,
)
