"""Claims by green threads on a service in their process; test_fixtures.py runs this module."""

import eventlet

eventlet.monkey_patch()  # like nova, before anything else is imported

import tempfile  # noqa: E402
import uuid  # noqa: E402

import sqlalchemy as sa  # noqa: E402

from tests.projects.nova import PlacementFixture  # noqa: E402


class InFile(PlacementFixture):
    """The service on a database file."""

    def _configure_placement(self, conf_fixture):
        super()._configure_placement(conf_fixture)
        url = f"sqlite:///{self.directory}/placement.sqlite"
        conf_fixture.config(connection=url, group="placement_database")
        conf_fixture.config(index_directory=f"{self.directory}/index", group="placement")


def main():
    # A green thread that is about to execute a statement yields to all others first.
    sa.event.listen(sa.Engine, "before_cursor_execute", lambda *_: eventlet.sleep())
    print_outcomes(PlacementFixture())
    with tempfile.TemporaryDirectory() as InFile.directory:
        print_outcomes(InFile())


def print_outcomes(fixture):
    with fixture as placement:
        host = placement.add_host(vcpus=16)
        # No attempt needs a retry: green threads run one at a time.
        placement.conf_fixture.config(allocation_conflict_retry_count=1, group="placement")

        def claim(number):
            if number % 2:  # the others write while the index is read
                placement.ask("GET", "/allocation_candidates?resources=VCPU:1")
            return placement.claim(uuid.uuid4(), host)

        statuses = list(eventlet.GreenPool().imap(claim, range(24)))
        used = placement.usage(host)
        print(f"{statuses.count(204)} taken, {statuses.count(409)} refused, {used} used")  # noqa: T201


if __name__ == "__main__":
    main()
