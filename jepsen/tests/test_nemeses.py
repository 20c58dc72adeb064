"""Nemeses: their names, and the clusters to which they apply."""

from __future__ import annotations

from jepsen import catalogue
from jepsen.clusters import other_implementation, single_database


def test_the_catalogue_uses_the_names_of_the_nemeses():
    assert {name: catalogue.nemesis(name).name for name in catalogue.NEMESES} == {
        name: name for name in catalogue.NEMESES
    }


def test_another_implementation_is_not_reconfigured():
    ours, foreign = single_database.MariaDB(), other_implementation.MariaDB()
    for cluster in (ours, foreign):
        cluster.services = cluster.servers = [None]
    applying = {
        name: [catalogue.nemesis(name)().applies_to(cluster) for cluster in (ours, foreign)]
        for name in catalogue.NEMESES
    }
    differing = {name for name, (to_ours, to_foreign) in applying.items() if to_ours != to_foreign}
    assert differing == {"reload-service", "pool-of-one"}
    assert applying["kill-worker"] == applying["kill-database"] == [True, True]
