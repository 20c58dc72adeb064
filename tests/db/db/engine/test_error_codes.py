"""Every code of the tables has its class when the real server raises it through the real driver."""

from __future__ import annotations

import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from placement import errors
from placement.db.engine import driver_errors, error_codes
from placement.db.engine.error_codes import ErrorClass
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests.clock import PATIENCE
from tests.made import opened

pytestmark = pytest.mark.every_database

#: A second list of the codes, which detects lost or changed entries.
MYSQL = {
    ErrorClass.COLLISION: "1020 1022 1205 1213 1412 1615 1689 3101 3572",
    ErrorClass.LOST: "1015 1021 1023 1024 1026 1028 1030 1032 1034 1036 1037 1038 1039 1040 1041 1042 1043 1047 1053 "
    "1077 1078 1079 1080 1114 1135 1152 1154 1155 1156 1157 1158 1159 1160 1161 1180 1181 1184 1194 1195 1203 1206 "
    "1226 1290 1296 1297 1317 1461 1467 1534 1598 1637 1712 1792 1812 1814 1815 1836 1874 1927 1932 1969 3019 3024 "
    "3032 3100 3168 3169 3170 4031 9001",
    ErrorClass.DENIED: "1044 1045 1049 1129 1130 1142 1143 1227 1251 1524 1698 1820 1862 3118 3159 3955 4151",
    ErrorClass.VALUE: "1119 1153 1197 1264 1265 1267 1270 1271 1292 1300 1366 1390 1406 1436 1690 1713 3988",
}
MYSQL_CLIENT = {
    ErrorClass.LOST: "2001 2002 2003 2004 2005 2006 2008 2012 2013 2014 2026 2027 2055",
    ErrorClass.DENIED: "2059 2061",
    ErrorClass.VALUE: "2020",
}
POSTGRESQL = {
    ErrorClass.COLLISION: "40001 40002 40P01 55006 55P03 72000 23505 23503 23514",
    ErrorClass.LOST: "25006 25P03 25P04 40003 26000 42P05 08000 08006 08P01 53000 53100 53200 53300 57014 57P01 57P02 "
    "57P03 57P04 57P05 58000 58030 F0000 XX000 XX001",
    ErrorClass.DENIED: "28000 28P01 3D000 42501",
    ErrorClass.VALUE: "22001 22003 22021 22P05 54000 54001 54023",
}
BUGS = {"mariadb": "1054 1064 1146 1305", "postgresql": "25P02 42601 42703 42P01 0A000"}
READ_ONLY = {"mariadb": "1036 1290 1792 1836 1874 3100", "postgresql": "25006"}

SIGNAL = "SIGNAL SQLSTATE '{}' SET MYSQL_ERRNO = {}, MESSAGE_TEXT = 'told to'"
RAISE = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{}'; END $$"


def provoke(database, code):
    """Return the error that the server raises with this code, as the driver and SQLAlchemy raise it."""
    mariadb = database.url.get_backend_name() == "mysql"
    # In MySQL a deadlock has the SQLSTATE of PostgreSQL's serialization failure.
    statement = SIGNAL.format("40001" if code == "1213" else "HY000", code) if mariadb else RAISE.format(code)
    with database.engine.connect() as connection, pytest.raises(exc.DBAPIError) as error:
        connection.exec_driver_sql(statement)
    return error.value


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_errors_of_the_server_have_the_class_of_the_table(backend, database):
    expected = MYSQL if backend.kind == "mariadb" else POSTGRESQL
    expected = expected | {ErrorClass.INTERNAL: BUGS[backend.kind]}
    for error_class, numbers in expected.items():
        for number in numbers.split():
            error = provoke(database, number)
            assert driver_errors.classify(error) is error_class, number
            assert driver_errors.is_read_only(error) == (number in READ_ONLY[backend.kind].split()), number


def test_the_tables_contain_the_listed_codes_each_with_a_reason():
    kinds = [*MYSQL.items(), *MYSQL_CLIENT.items()]
    listed = {number: error_class for error_class, text in kinds for number in text.split()}
    assert {str(number): code.error_class for number, code in error_codes.MYSQL.items()} == listed
    states = {state for text in POSTGRESQL.values() for state in text.split()}
    assert states >= error_codes.POSTGRESQL.keys()
    assert {state[:2] for state in states} >= error_codes.POSTGRESQL_CLASSES.keys()
    tables = (error_codes.MYSQL, error_codes.POSTGRESQL, error_codes.POSTGRESQL_CLASSES, error_codes.SQLITE)
    assert all(code.reason for table in tables for code in table.values())


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_a_statement_larger_than_a_packet_is_not_an_internal_error(database):
    packet = database.read(lambda db: db.execute(sa.text("SELECT @@max_allowed_packet")).scalar())
    with pytest.raises((errors.InvalidValue, errors.DatabaseUnavailable)):
        database.read(lambda db: db.execute(sa.text("SELECT LENGTH(:text)"), {"text": "x" * (packet + 1)}).scalar())
    assert database.read(lambda db: db.execute(sa.select(1)).scalar()) == 1


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_condition_deeper_than_sqlite_allows_is_the_clients_fault(database):
    condition = " OR ".join(["id = 0"] * 5000)
    with pytest.raises(errors.InvalidValue):
        database.read(lambda db: db.execute(sa.text(f"SELECT 1 FROM traits WHERE {condition}")).scalar())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_database_file_that_cannot_grow_refuses_writes_and_serves_reads(database):
    """The file size limit of a child process stands in for a full disk or a quota."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        refused, served = process.submit(write_without_disk_space, str(database.url)).result(PATIENCE)
    assert refused == ("DatabaseUnavailable", "disk I/O error")
    assert served is None
    assert database.read(lambda db: ResourceProvider.find(db, "x")) is not None


def write_without_disk_space(url):
    """Return the error of a write whose file cannot grow, and the result of a read meanwhile; finally write again."""
    with opened(url) as database:
        database.read(lambda db: ResourceProvider.find(db, "x"))
        _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)

        def work(db):
            for number in range(2000):
                db.execute(sa.text("INSERT INTO traits (name) VALUES (:name)"), {"name": f"{number:0200}"})

        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard_limit))
        try:
            database.write(work)
        except errors.Failure as failure:
            refused = type(failure).__name__, str(failure.__cause__.orig)
        provider = database.read(lambda db: ResourceProvider.find(db, "x"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
        database.write(lambda db: LockedProvider.create(db, uuid="x", name="x"))
    return refused, provider
