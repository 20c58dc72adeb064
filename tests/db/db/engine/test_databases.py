"""Assumptions of the tests: each database is clean, and a server keeps committed data even after SIGKILL."""

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import metadata, resource_classes, resource_providers, traits
from tests import servers


def provider(number, parent=None):
    return {
        "id": number,
        "uuid": f"{number:036}",
        "name": f"p{number}",
        "root_provider_id": 1,
        "parent_provider_id": parent,
    }


def counts(database):
    def read(db):
        return {
            table.name: db.execute(sa.select(sa.func.count()).select_from(table)).scalar()
            for table in metadata.sorted_tables
        }

    return database.read(read)


def test_database_has_the_standard_names_and_nothing_else(database):
    filled = {name for name, count in counts(database).items() if count}
    assert filled == {"resource_classes", "traits", "feed_instance"}


@pytest.mark.parametrize("harm", ["leaves trees", "adds names", "deletes a name", "drops a table"])
def test_database_is_clean_after_any_test(synced_database, harm):
    synced_database.clean()
    before = counts(synced_database.database)
    with synced_database.database.engine.begin() as connection:
        if harm == "leaves trees":
            connection.execute(sa.insert(resource_providers), [provider(1), provider(2, 1), provider(3, 2)])
        elif harm == "adds names":
            connection.execute(sa.insert(traits), [{"name": "CUSTOM_A"}, {"name": "CUSTOM_B"}])
        elif harm == "deletes a name":
            connection.execute(sa.delete(resource_classes).where(resource_classes.c.name == "VCPU"))
        else:
            connection.execute(sa.text("DROP TABLE inventories"))
    synced_database.clean()
    assert counts(synced_database.database) == before


def test_database_url_is_empty(database_url):
    engine = sa.create_engine(database_url)
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_database_can_be_dropped_while_there_are_connections(backend):
    url = backend.create_database()
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE t (a INTEGER)"))
        connection.commit()
        connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        backend.drop_database(url)
        connection.invalidate()
    engine.dispose()
    second_engine = sa.create_engine(url)
    if backend.kind == "sqlite":
        assert sa.inspect(second_engine).get_table_names() == []
    else:
        with pytest.raises(sa.exc.OperationalError):
            second_engine.connect()
    second_engine.dispose()


@pytest.mark.parametrize("private_server", ["mariadb", "postgresql"], indirect=True)
def test_committed_data_survives_the_death_of_the_server(private_server):
    engine = sa.create_engine(private_server.create_database())
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (a INTEGER)"))
        connection.execute(sa.text("INSERT INTO t VALUES (7)"))
    private_server.kill()
    with pytest.raises(sa.exc.DBAPIError), engine.connect() as connection:
        connection.execute(sa.text("SELECT a FROM t"))
    private_server.start()
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT a FROM t")).scalar() == 7
    engine.dispose()


def test_all_callers_share_one_server(backend):
    assert servers.shared(backend.kind).url == backend.url
