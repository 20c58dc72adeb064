"""The responses to GET requests of the latest version, computed from the model."""

from __future__ import annotations

from typing import Any

from tests.model.records import STANDARD_CLASSES, Consumer, Provider, Record


class Seen:
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
        shown = {name: dict(vars(inventory)) for name, inventory in provider.inventories.items()}
        return {"resource_provider_generation": provider.generation, "inventories": shown}

    def usages(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        used = {name: self.used(uuid, name) for name in provider.inventories}
        return {"resource_provider_generation": provider.generation, "usages": used}

    def traits_of_provider(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        return {"resource_provider_generation": provider.generation, "traits": sorted(provider.traits)}

    def aggregates(self, uuid: str) -> Any:
        provider = self.providers[uuid]
        return {"resource_provider_generation": provider.generation, "aggregates": sorted(provider.aggregates)}

    def allocations_of_provider(self, uuid: str) -> Any:
        here = {
            consumer: {"resources": known.held[uuid], "consumer_generation": known.generation}
            for consumer, known in self.consumers.items()
            if uuid in known.held
        }
        return {"resource_provider_generation": self.providers[uuid].generation, "allocations": here}

    def allocations(self, consumer: str) -> Any:
        known = self.consumers.get(consumer)
        if known is None:
            return {"allocations": {}}
        return {
            "allocations": {
                uuid: {"resources": amounts, "generation": self.providers[uuid].generation}
                for uuid, amounts in known.held.items()
            },
            "project_id": known.project,
            "user_id": known.user,
            "consumer_type": known.type,
            "consumer_generation": known.generation,
        }

    def claim_of(self, consumer: str) -> Any:
        """Return the document of /v1/claims about a consumer with allocations, and only whether it has an expiry."""
        known = self.consumers[consumer]
        record = known.record or Record()
        shown = self.allocations(consumer)
        for uuid, allocation in shown["allocations"].items():
            allocation["name"] = self.providers[uuid].name
        return {
            "consumer": consumer,
            **shown,
            "mappings": record.mappings if record.generation == known.generation else None,
            "ends": record.ends,
        }

    def usages_of_project(self, project: str) -> Any:
        shown: dict[str, dict[str, int]] = {}
        for consumer in self.consumers.values():
            if consumer.project == project:
                usage = shown.setdefault(consumer.type, {"consumer_count": 0})
                usage["consumer_count"] += 1
                for amounts in consumer.held.values():
                    for name, amount in amounts.items():
                        usage[name] = usage.get(name, 0) + amount
        return {"usages": shown}

    def used(self, uuid: str, name: str) -> int:
        return sum(consumer.held.get(uuid, {}).get(name, 0) for consumer in self.consumers.values())

    def ancestry(self, uuid: str) -> list[str]:
        parent = self.providers[uuid].parent
        return [uuid, *(self.ancestry(parent) if parent else [])]
