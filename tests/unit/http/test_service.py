"""Objects that a service creates once and shares among the requests of an extension."""

from __future__ import annotations

from placement.http.service import Service


class Shared:
    """An object that each service creates once."""

    def __init__(self, conf, database, index):
        self.made_of = conf, database, index


class Other(Shared):
    pass


def service(conf="conf"):
    return Service(conf, "database", "policy", "index", ())


def test_a_shared_object_is_created_once_from_the_services_parts():
    first_service = service()
    shared = first_service.shared(Shared)
    assert shared.made_of == ("conf", "database", "index")
    assert first_service.shared(Shared) is shared


def test_each_class_and_each_service_has_its_own_object():
    first, second = service(), service("other conf")
    assert type(first.shared(Other)) is Other
    assert type(first.shared(Shared)) is Shared
    assert second.shared(Shared).made_of == ("other conf", "database", "index")
    assert first.shared(Shared).made_of == ("conf", "database", "index")
