"""A small cloud for the tests of ``placement-manage consumers``: hosts, a pool, and consumers of any age."""

from __future__ import annotations

import datetime
import uuid

import sqlalchemy as sa
import yaml

from placement.cmd import manage
from placement.db.schema.tables import consumers
from placement.objects.claims import leases
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider

#: The resources that the flavor of the fake nova requests.
FLAVOR = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 20}


def uuids(number: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(number)]


class Cloud:
    """Three hosts, host1 with a child, and a sharing provider, by name."""

    def __init__(self, database, directory, monkeypatch, in_process) -> None:
        self.database, self._directory, self._in_process = database, directory, in_process
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", database.url.render_as_string(hide_password=False))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(directory / "clouds.yaml"))
        self.providers = {}

        def make(db):
            for name in ("host1", "host2", "host3", "pool", "numa1"):
                parent = self.providers["host1"] if name == "numa1" else None
                provider = LockedProvider.create(db, uuid=str(uuid.uuid4()), name=name, parent_uuid=parent)
                classes = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU")
                provider.replace_inventories([Inventory(kind, 2_000_000_000) for kind in classes])
                if name == "pool":
                    provider.replace_traits({"MISC_SHARES_VIA_AGGREGATE"})
                self.providers[name] = provider.record.uuid

        database.write(make)

    def run(self, *words):
        """Run ``placement-manage consumers`` with these arguments."""
        return self._in_process(manage, "consumers", *words)

    def connect(self, **urls):
        """Write clouds.yaml: URLs by the names of clouds."""
        clouds = {name: {"auth_type": "none", "auth": {"endpoint": url}} for name, url in urls.items()}
        (self._directory / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))

    def file(self, *lines):
        """Return the path of a file with these lines."""
        path = self._directory / "expected"
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    def claim(self, consumer=None, *, kind="INSTANCE", project="red", days=2, generation=None, **resources):
        """Claim resources by provider name, by default the flavor's on host1; return the uuid of the consumer."""
        consumer = consumer or str(uuid.uuid4())
        amounts = {self.providers[name]: amount for name, amount in (resources or {"host1": FLAVOR}).items()}
        claim = Claim(consumer, amounts, Owner(project, "ann", kind), generation=generation)
        self.database.write(lambda db: ClaimSet(db, [claim]).place())
        if days:
            self.age(consumer, days)
        return consumer

    def age(self, consumer, days, column=None):
        """Set the age of a consumer in days, by the database's clock; None removes the times."""

        def work(db):
            at = None if days is None else leases.now(db) - datetime.timedelta(days=days)
            columns = (column,) if column else ("created_at", "updated_at")
            is_consumer = consumers.c.uuid == consumer
            db.execute(sa.update(consumers).where(is_consumer).values(dict.fromkeys(columns, at)))

        self.database.write(work)

    def consumers(self):
        """Return the uuids of all consumers."""
        return set(self.database.read(lambda db: db.execute(sa.select(consumers.c.uuid)).scalars().all()))
