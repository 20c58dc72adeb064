"""The responses to GET requests of the latest version, computed from the model."""

from __future__ import annotations

from typing import Any

from tests.model.records import STANDARD_CLASSES, Consumer, Provider, Record


class Responses:
    """The state of the model, as GET requests show it."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.classes: dict[str, int] = {name: number for number, name in enumerate(STANDARD_CLASSES)}
        self.traits: set[str] = set()

    def provider(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        return {
            "uuid": uuid,
            "name": provider.name,
            "generation": provider.generation,
            "parent_provider_uuid": provider.parent,
            "root_provider_uuid": self.ancestry(uuid)[-1],
        }

    def inventory(self, uuid: str, name: str) -> Any:
        provider = self.providers[uuid]
        return {"resource_provider_generation": provider.generation, **vars(provider.inventories[name])}

    def inventories(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        by_class = {name: dict(vars(inventory)) for name, inventory in provider.inventories.items()}
        return {"resource_provider_generation": provider.generation, "inventories": by_class}

    def usages(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        by_class = {name: self.usage(uuid, name) for name in provider.inventories}
        return {"resource_provider_generation": provider.generation, "usages": by_class}

    def traits_of_provider(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        return {"resource_provider_generation": provider.generation, "traits": sorted(provider.traits)}

    def aggregates(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        return {"resource_provider_generation": provider.generation, "aggregates": sorted(provider.aggregates)}

    def allocations_of_provider(self, uuid: str) -> Any:
        entries = {
            consumer: {"resources": state.allocations[uuid], "consumer_generation": state.generation}
            for consumer, state in self.consumers.items()
            if uuid in state.allocations
        }
        return {"resource_provider_generation": self.providers[uuid].generation, "allocations": entries}

    def allocations(self, consumer: str) -> Any:
        state = self.consumers.get(consumer)
        if state is None:
            return {"allocations": {}}
        return {
            "allocations": {
                uuid: {"resources": amounts, "generation": self.providers[uuid].generation}
                for uuid, amounts in state.allocations.items()
            },
            "project_id": state.project,
            "user_id": state.user,
            "consumer_type": state.type,
            "consumer_generation": state.generation,
        }

    def claim_of(self, consumer: str) -> Any:
        """Return the document of /v1/claims about a consumer with allocations, and only whether it has an expiry."""
        state = self.consumers[consumer]
        record = state.record or Record()
        response = self.allocations(consumer)
        for uuid, allocation in response["allocations"].items():
            allocation["name"] = self.providers[uuid].name
        return {
            "consumer": consumer,
            **response,
            "mappings": record.mappings if record.generation == state.generation else None,
            "has_expiry": record.has_expiry,
        }

    def usages_of_project(self, project: str) -> Any:
        by_type: dict[str, dict[str, int]] = {}
        for consumer in self.consumers.values():
            if consumer.project == project:
                usage = by_type.setdefault(consumer.type, {"consumer_count": 0})
                usage["consumer_count"] += 1
                for amounts in consumer.allocations.values():
                    for name, amount in amounts.items():
                        usage[name] = usage.get(name, 0) + amount
        return {"usages": by_type}

    def usage(self, uuid: str, name: str) -> int:
        return sum(consumer.allocations.get(uuid, {}).get(name, 0) for consumer in self.consumers.values())

    def ancestry(self, uuid: str) -> list[str]:
        parent = self.providers[uuid].parent
        return [uuid, *(self.ancestry(parent) if parent else [])]
