"""A model of the service, made of a few dictionaries: the response to each write, and the state after it.

Written from the reference (docs/api) alone, in the simplest way: nothing here is fast, concurrent or stored.  A method
returns the content of the response to a write, or raises Refused; a refused write changes nothing.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.model.records import (
    CONCURRENT_UPDATE,
    DUPLICATE_NAME,
    FIRST_CUSTOM_ID,
    INVENTORY_IN_USE,
    STANDARD_CLASSES,
    UNSAID,
    Claim,
    Consumer,
    Inventories,
    Inventory,
    Provider,
    Refused,
)
from tests.model.responses import Responses


def atomic(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method atomic: a refused write changes nothing."""

    @functools.wraps(method)
    def wrapper(self: Model, *args: Any, **kwargs: Any) -> Any:
        before = copy.deepcopy(vars(self))
        try:
            return method(self, *args, **kwargs)
        except Refused:
            vars(self).update(before)
            raise

    return wrapper


class Model(Responses):
    """The state of the service, and its changes by writes."""

    # --- providers ---

    @atomic
    def create_provider(self, uuid: str, name: str, parent: str | None = None) -> Any:
        if parent == uuid:
            raise Refused(400, "parent provider UUID cannot be same as UUID")
        if parent is not None and parent not in self.providers:
            raise Refused(400, "parent provider UUID does not exist")
        if uuid in self.providers or any(name == other.name for other in self.providers.values()):
            raise Refused(409, "Conflicting resource provider", code=DUPLICATE_NAME)
        self.providers[uuid] = Provider(name, parent)
        return self.provider(uuid)

    @atomic
    def save_provider(self, uuid: str, name: str, parent: str | None = UNSAID, *, may_reparent: bool = False) -> Any:
        provider = self._provider(uuid)
        if parent not in (UNSAID, provider.parent):
            self._move(uuid, parent, may_reparent)
        if any(name == other.name for other in self.providers.values() if other is not provider):
            raise Refused(409, f"Conflicting resource provider {name} already exists", code=DUPLICATE_NAME)
        provider.name = name
        return self.provider(uuid)

    def _move(self, uuid: str, parent: str | None, may_reparent: bool) -> None:
        if parent is None and not may_reparent:
            raise Refused(400, "un-parenting a provider is not currently allowed")
        if parent is not None and parent not in self.providers:
            raise Refused(400, "parent provider UUID does not exist")
        if self.providers[uuid].parent is not None and not may_reparent:
            raise Refused(400, "re-parenting a provider is not currently allowed")
        if parent is not None and uuid in self.ancestry(parent):
            raise Refused(400, "creating loop in the provider tree is not allowed")
        self.providers[uuid].parent = parent

    @atomic
    def delete_provider(self, uuid: str) -> None:
        self._provider(uuid)
        if any(other.parent == uuid for other in self.providers.values()):
            raise Refused(409, "It has child", code="placement.resource_provider.cannot_delete_parent")
        if self.allocations_of_provider(uuid)["allocations"]:
            raise Refused(409, "has allocations", code="placement.resource_provider.inuse")
        del self.providers[uuid]

    def _provider(self, uuid: str) -> Provider:
        if uuid not in self.providers:
            raise Refused(404, f"No resource provider with uuid {uuid} found")
        return self.providers[uuid]

    # --- inventories ---

    @atomic
    def add_inventory(self, uuid: str, name: str, inventory: Inventory, *, may_be_full: bool) -> Any:
        provider = self._provider(uuid)
        self._require_capacity([inventory], may_be_full)
        self._require_classes([name])
        if name in provider.inventories:
            raise Refused(409, "Update conflict", code=CONCURRENT_UPDATE)
        provider.inventories[name] = inventory
        provider.generation += 1
        return self.inventory(uuid, name)

    @atomic
    def update_inventory(
        self, uuid: str, name: str, generation: int, inventory: Inventory, *, may_be_full: bool
    ) -> Any:
        provider = self._provider(uuid)
        self._expect(provider, generation)
        self._require_capacity([inventory], may_be_full)
        if name not in self.classes:
            raise Refused(404, f"No such resource class {name}")
        if name not in provider.inventories:
            raise Refused(400, "No inventory record with resource class")
        provider.inventories[name] = inventory
        provider.generation += 1
        return self.inventory(uuid, name)

    @atomic
    def replace_inventories(self, uuid: str, generation: int, inventories: Inventories, *, may_be_full: bool) -> Any:
        provider = self._provider(uuid)
        self._expect(provider, generation)
        self._require_capacity(inventories.values(), may_be_full)
        self._require_classes(inventories)
        self._set_inventories(uuid, inventories)
        provider.generation += 1
        return self.inventories(uuid)

    @atomic
    def remove_inventory(self, uuid: str, name: str) -> None:
        provider = self._provider(uuid)
        if name not in provider.inventories:
            raise Refused(404, f"No inventory of class {name} found for delete")
        if self.usages(uuid)["usages"][name]:
            raise Refused(409, f"Unable to delete inventory of class {name}", code=CONCURRENT_UPDATE)
        del provider.inventories[name]
        provider.generation += 1

    @atomic
    def remove_inventories(self, uuid: str) -> None:
        provider = self._provider(uuid)
        self._set_inventories(uuid, {})
        provider.generation += 1

    def _set_inventories(self, uuid: str, inventories: Inventories) -> None:
        classes_in_use = [
            name for name, amount in self.usages(uuid)["usages"].items() if amount and name not in inventories
        ]
        if classes_in_use:
            names = ", ".join(sorted(classes_in_use, key=lambda name: self.classes[name]))
            raise Refused(409, f"Inventory for '{names}' on resource provider '{uuid}' in use", code=INVENTORY_IN_USE)
        self.providers[uuid].inventories = dict(inventories)

    def _require_capacity(self, inventories: Iterable[Inventory], may_be_full: bool) -> None:
        for inventory in inventories:
            capacity = int(inventory.capacity)
            if capacity < 0 and may_be_full:
                raise Refused(400, "The reserved value is greater than total.")
            if capacity <= 0 and not may_be_full:
                raise Refused(400, "The reserved value is greater than or equal to total.")

    def _require_classes(self, names: Iterable[str]) -> None:
        if unknown := [f"No such resource class {name}." for name in names if name not in self.classes]:
            raise Refused(400, *unknown)

    @staticmethod
    def _expect(provider: Provider, generation: int, phrase: str = "resource provider generation conflict") -> None:
        if generation != provider.generation:
            raise Refused(409, phrase, code=CONCURRENT_UPDATE)

    # --- traits and aggregates of a provider ---

    @atomic
    def replace_traits(self, uuid: str, generation: int, names: Iterable[str]) -> Any:
        provider = self._provider(uuid)
        self._expect(provider, generation, "generation already changed")
        if set(names) - self.traits:
            raise Refused(400, "No such trait")
        self._set_traits(provider, set(names))
        return self.traits_of_provider(uuid)

    @atomic
    def clear_traits(self, uuid: str) -> None:
        self._set_traits(self._provider(uuid), set())

    @staticmethod
    def _set_traits(provider: Provider, names: set[str]) -> None:
        provider.generation += provider.traits != names
        provider.traits = names

    @atomic
    def replace_aggregates(self, uuid: str, generation: int | str, aggregates: Iterable[str]) -> Any:
        provider = self._provider(uuid)
        if generation != UNSAID:
            self._expect(provider, int(generation), "generation already changed")
            provider.generation += 1
        provider.aggregates = set(aggregates)
        response = self.aggregates(uuid)
        return response if generation != UNSAID else {"aggregates": response["aggregates"]}

    # --- names ---

    @atomic
    def create_class(self, name: str) -> None:
        if name in self.classes:
            raise Refused(409, f"Conflicting resource class already exists: {name}")
        self.ensure_class(name)

    def ensure_class(self, name: str) -> bool:
        """Create the class if it does not exist; return whether it is new."""
        new = name not in self.classes
        self.classes.setdefault(name, max(FIRST_CUSTOM_ID, *(number + 1 for number in self.classes.values())))
        return new

    @atomic
    def rename_class(self, name: str, new_name: str) -> Any:
        if name not in self.classes:
            raise Refused(404, f"No such resource class {name}")
        if name in STANDARD_CLASSES:
            raise Refused(400, f"Cannot update standard resource class {name}")
        if new_name in self.classes and new_name != name:
            raise Refused(409, f"Resource class already exists: {new_name}")
        self.classes[new_name] = self.classes.pop(name)
        mappings = [provider.inventories for provider in self.providers.values()]
        mappings += [amounts for consumer in self.consumers.values() for amounts in consumer.allocations.values()]
        for mapping in mappings:
            if name in mapping:
                mapping[new_name] = mapping.pop(name)
        return {"name": new_name}

    @atomic
    def delete_class(self, name: str) -> None:
        if name not in self.classes:
            raise Refused(404, f"No such resource class {name}")
        if name in STANDARD_CLASSES:
            raise Refused(400, f"Cannot delete standard resource class {name}")
        if any(name in provider.inventories for provider in self.providers.values()):
            raise Refused(409, "Class is in use in inventory")
        del self.classes[name]

    def ensure_trait(self, name: str) -> bool:
        """Create the trait if it does not exist; return whether it is new."""
        new = name not in self.traits
        self.traits.add(name)
        return new

    @atomic
    def delete_trait(self, name: str) -> None:
        if name not in self.traits:
            raise Refused(404, f"No such trait(s): {name}")
        if any(name in provider.traits for provider in self.providers.values()):
            raise Refused(409, f"The trait {name} is in use by a resource provider")
        self.traits.remove(name)

    # --- claims ---

    @atomic
    def place(self, claims: list[Claim]) -> None:
        self._place(claims)

    @atomic
    def release(self, consumer: str) -> None:
        if consumer not in self.consumers:
            raise Refused(404, f"No allocations for consumer '{consumer}'")
        del self.consumers[consumer]

    @atomic
    def reshape(self, inventories: Mapping[str, tuple[int, Inventories]], claims: list[Claim]) -> None:
        for uuid, (generation, _) in inventories.items():
            if uuid not in self.providers:
                raise Refused(400, "in inventories not found", code="placement.resource_provider.not_found")
            self._expect(self.providers[uuid], generation, "resource provider generation conflict for provider")
        self._check_references(claims)
        self._require_classes([name for _, new in inventories.values() for name in new])
        for uuid, (_, new) in inventories.items():
            if new:
                self.providers[uuid].inventories |= new
                self.providers[uuid].generation += 1
        self._place(claims)
        for uuid, (_, new) in inventories.items():
            self._set_inventories(uuid, new)
            self.providers[uuid].generation += 1

    def _check_references(self, claims: list[Claim]) -> None:
        """Refuse claims with a wrong generation, or on a provider that does not exist."""
        for claim in claims:
            state = self.consumers.get(claim.consumer)
            actual = state.generation if state else None
            if claim.generation not in (UNSAID, actual):
                expected = "null" if actual is None else actual
                phrase = f"consumer generation conflict - expected {expected} but got {claim.generation}"
                raise Refused(409, phrase, code=CONCURRENT_UPDATE)
        for claim in claims:
            if unknown := [uuid for uuid in claim.allocations if uuid not in self.providers]:
                raise Refused(400, *(f"Allocation for resource provider '{u}' that does not exist." for u in unknown))

    def _place(self, claims: list[Claim]) -> None:
        self._check_references(claims)
        requested = [
            (uuid, *item) for claim in claims for uuid, amounts in claim.allocations.items() for item in amounts.items()
        ]
        self._require_classes([name for _, name, _ in requested])
        reasons = [self._reason_against(uuid, name, amount, claims) for uuid, name, amount in requested]
        if any(reasons):
            raise Refused(409, *filter(None, reasons))
        touched = {uuid for uuid, _, _ in requested}
        for claim in claims:
            before = self.consumers.pop(claim.consumer, None)
            if claim.allocations:
                self.consumers[claim.consumer] = Consumer(
                    allocations=claim.allocations,
                    project=claim.project,
                    user=claim.user,
                    type=claim.type or (before.type if before else "unknown"),
                    generation=before.generation + 1 if before else 1,
                    record=before.record if before else None,
                )
            elif before:
                touched |= before.allocations.keys()
        for uuid in touched:
            self.providers[uuid].generation += 1

    def _reason_against(self, uuid: str, name: str, amount: int, claims: list[Claim]) -> str | None:
        """Return the reason against this amount, or None."""
        inventory = self.providers[uuid].inventories.get(name)
        if inventory is None:
            return "Inventory for '"
        if not inventory.min_unit <= amount <= inventory.max_unit or amount % inventory.step_size:
            return "The requested amount would violate inventory constraints."
        claimants = {claim.consumer for claim in claims}
        new = sum(claim.allocations.get(uuid, {}).get(name, 0) for claim in claims)
        old = sum(
            c.allocations.get(uuid, {}).get(name, 0) for c_uuid, c in self.consumers.items() if c_uuid in claimants
        )
        # A consumer may keep or reduce its amounts after its inventory has shrunk.
        if self.usage(uuid, name) - old + new > inventory.capacity and new > old:
            return "The requested amount would exceed the capacity."
        return None
