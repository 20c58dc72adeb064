"""Clients that send the same requests to a service and to its model, and compare responses and states.

Their actions are drawn as small numbers (tests/model/strategies.py); here the numbers become names and bodies.
"""

from __future__ import annotations

import functools
import uuid as uuid_module
from collections.abc import Callable, Mapping
from typing import Any

import hypothesis
from hypothesis.stateful import RuleBasedStateMachine, invariant

from tests.caller import Caller
from tests.model.records import UNKNOWN_OWNER, UNSAID, Allocations, Claim, Inventory, Refused
from tests.model.service import Model
from tests.model.strategies import CLASSES, CONSUMERS, CUSTOM_CLASSES, NO_SUCH_CLASS, NOT_THERE, TRAITS

#: Numbers that choose a provider and a class, and an amount.
Choices = list[tuple[int, int, int]]


class Clients(RuleBasedStateMachine):
    """The state of the clients; the test defines their actions."""

    #: The service.
    call: Caller

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.run = str(uuid_module.uuid4())[8:]

    # --- names ---

    def uuid(self, kind: str, number: int) -> str:
        """Return a uuid, the same one for the same number, and unique to this run."""
        return f"{kind}000000{number:x}{self.run}"

    def provider(self, which: int) -> str:
        """Return a provider, mostly an existing one."""
        uuids = sorted(self.model.providers)
        return self.uuid("a", 15) if which == NOT_THERE or not uuids else uuids[which % len(uuids)]

    def class_of(self, provider: str, which: int) -> str:
        """Return a class, mostly of the provider; otherwise one that it may lack, or that does not exist."""
        state = self.model.providers.get(provider)
        class_names = sorted(state.inventories) if state else []
        if which == NOT_THERE:
            return NO_SUCH_CLASS
        if which == NOT_THERE - 1 or not class_names:
            return CLASSES[which % len(CLASSES)]
        return class_names[which % len(class_names)]

    def holder(self, which: int) -> tuple[str, Allocations]:
        """Return an existing consumer, and a copy of its allocations."""
        consumers = sorted(self.model.consumers)
        consumer = consumers[which % len(consumers)]
        return consumer, copy_of(self.model.consumers[consumer].allocations)

    def allocations_of(self, choices: Choices) -> Allocations:
        """Return the allocations that a client requests."""
        allocations: Allocations = {}
        for which, which_class, amount in choices:
            provider = self.provider(which)
            allocations.setdefault(provider, {})[self.class_of(provider, which_class)] = amount
        return allocations

    def generation(self, provider: str, off: int = 0) -> int:
        state = self.model.providers.get(provider)
        return off + (state.generation if state else 0)

    def claim(
        self,
        consumer: str,
        allocations: Allocations,
        minor: int,
        owner: tuple[str, str],
        type_: str,
        belief: str = "right",
    ) -> Claim:
        """Return the claim of a client, as far as this version can express it."""
        state = self.model.consumers.get(consumer)
        actual = state.generation if state else None
        sent_generation = {"right": actual, "null": None, "off": (actual or 2) + 1}[belief]
        project, user = owner if minor >= 8 else (UNKNOWN_OWNER, UNKNOWN_OWNER)
        sent_type = type_ if minor >= 38 else None
        return Claim(consumer, allocations, project, user, sent_type, sent_generation if minor >= 28 else UNSAID)

    # --- requests and comparisons ---

    def does(
        self, status: int | Mapping[bool, int], method: str, path: str, minor: int, body: Any, model: Callable[[], Any]
    ) -> None:
        """Send the request, and compare the response with the model's: a refusal, or a success and its contents.

        ``status`` is the status of a success, or a mapping from the model's result to it.
        """
        answer = self.call(method, path, minor, body)
        hypothesis.event(f"{method} /{path.split('/')[1]}: {answer.status}")
        predicted = outcome(model)
        if isinstance(predicted, Refused):
            assert answer.status == predicted.status, (answer, predicted)
            assert answer.error.get("code") == (predicted.code if minor >= 23 else None), (answer, predicted)
            assert any(phrase in answer.error["detail"] for phrase in predicted.phrases), (answer, predicted)
        else:
            assert answer.status == (status if isinstance(status, int) else status[predicted]), answer
            assert answer.body is None or normalize(answer.body) == {
                key: predicted[key] for key in normalize(answer.body)
            }

    @invariant()
    def the_service_agrees_with_the_model(self) -> None:
        model = self.model
        providers = self.get("/resource_providers")["resource_providers"]
        assert {provider["uuid"]: provider for provider in providers} == {p: model.provider(p) for p in model.providers}
        for provider in model.providers:
            path = f"/resource_providers/{provider}"
            assert self.get(f"{path}/inventories") == model.inventories(provider)
            assert self.get(f"{path}/usages") == model.usages(provider)
            assert self.get(f"{path}/traits") == model.traits_of_provider(provider)
            assert self.get(f"{path}/aggregates") == model.aggregates(provider)
            assert self.get(f"{path}/allocations") == model.allocations_of_provider(provider)
        for number in range(CONSUMERS):
            consumer = self.uuid("c", number)
            assert self.get(f"/allocations/{consumer}") == model.allocations(consumer)
        for project in ("project1", "project2", UNKNOWN_OWNER):
            assert self.get(f"/usages?project_id={project}") == model.usages_of_project(project)
        classes = {document["name"] for document in self.get("/resource_classes")["resource_classes"]}
        assert classes & {*CLASSES} == model.classes.keys() & {*CLASSES}
        assert set(self.get("/traits?name=startswith:CUSTOM_")["traits"]) == model.traits

    def get(self, path: str) -> Any:
        return get(self.call, path)

    #: Called at the end of each example, if the machine defines it.
    at_end: Callable[[], object] = staticmethod(lambda: None)

    def teardown(self) -> None:
        self.at_end()
        clear(self.call)


def when(applies: Callable[[Any], Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a rule do nothing if it does not apply.

    This replaces a precondition, which must not depend on the choices of a service: these differ when Hypothesis
    repeats the steps, and it fails ("inconsistent data generation") if other rules are then enabled.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def wrapper(self: Any, *args: Any, **values: Any) -> None:
            if applies(self):
                function(self, *args, **values)

        return wrapper

    return decorate


def get(call: Caller, path: str) -> Any:
    """Return the state of the service."""
    answer = call("GET", path)
    assert answer.status == 200, answer
    return normalize(answer.body)


def clear(call: Caller) -> None:
    """Delete everything, even after a failure."""
    providers = get(call, "/resource_providers")["resource_providers"]
    for provider in providers:
        for consumer in get(call, f"/resource_providers/{provider['uuid']}/allocations")["allocations"]:
            call("DELETE", f"/allocations/{consumer}")
    for _ in providers:  # children are deleted before their parents
        for provider in providers:
            call("DELETE", f"/resource_providers/{provider['uuid']}")
    for name in CUSTOM_CLASSES:
        call("DELETE", f"/resource_classes/{name}")
    for name in TRAITS:
        call("DELETE", f"/traits/{name}")
    assert get(call, "/resource_providers") == {"resource_providers": []}


def outcome(model: Callable[[], Any]) -> Any:
    """Return the model's result, or its refusal."""
    try:
        return model()
    except Refused as refused:
        return refused


def copy_of(allocations: Allocations) -> Allocations:
    return {provider: dict(amounts) for provider, amounts in allocations.items()}


def record(inventory: Inventory) -> dict[str, Any]:
    """Return the fields that a client must send: all except defaults."""
    fields = vars(inventory).items()
    return {name: value for name, value in fields if name == "total" or value != getattr(Inventory, name)}


def records(inventories: Mapping[str, Inventory], generation: int) -> dict[str, Any]:
    """Return the inventories of a provider in the form that a client sends."""
    bodies = {name: record(inventory) for name, inventory in inventories.items()}
    return {"resource_provider_generation": generation, "inventories": bodies}


def body_of(claim: Claim, minor: int) -> dict[str, Any]:
    """Return the body of the claim in this version."""
    body: dict[str, Any] = {
        "allocations": {provider: {"resources": amounts} for provider, amounts in claim.allocations.items()}
    }
    if minor < 12:
        body["allocations"] = [
            {"resource_provider": {"uuid": provider}, "resources": amounts}
            for provider, amounts in claim.allocations.items()
        ]
    if minor >= 8:
        body |= {"project_id": claim.project, "user_id": claim.user}
    if minor >= 28:
        body["consumer_generation"] = claim.generation
    if minor >= 34 and claim.allocations:
        body["mappings"] = {"": list(claim.allocations)}
    if minor >= 38:
        body["consumer_type"] = claim.type
    return body


def normalize(value: Any) -> Any:
    """Return the document without links and with sorted sets, as in the model."""
    if isinstance(value, dict):
        return {key: normalize(inner) for key, inner in value.items() if key != "links"}
    if isinstance(value, list):
        return sorted(value) if all(isinstance(item, str) for item in value) else [normalize(item) for item in value]
    return value
