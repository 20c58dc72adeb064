"""Every block of every page is run by a test, or checked: programs, options and values exist."""

from __future__ import annotations

import re
import types
import unittest

import pytest

from tests.docs import checks, run_by
from tests.docs.blocks import PAGES, ROOT, Block, blocks, unsupported_lines


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_run_or_checked(page, tmp_path):
    assert unsupported_lines(PAGES[page]) == []
    wrong = []
    for block in blocks(PAGES[page]):
        try:
            checks.check(page, block, tmp_path)
        except Exception as error:
            wrong.append(f"{page}:{block.line}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_entry_matches_blocks_that_no_earlier_entry_matches():
    pages_and_blocks = [(page, block) for page in PAGES for block in blocks(PAGES[page])]
    assert {run_by.run_by(*page_and_block) for page_and_block in pages_and_blocks} - {None} == {*run_by.RUN}
    assert {run_by.checked_for(*page_and_block) for page_and_block in pages_and_blocks} - {None} == {*run_by.CHECKED}


def test_the_tests_that_run_blocks_name_their_pages():
    """Tests of many pages read all matching pages; docs/backup.rst has its own module."""
    backups_module = (ROOT / "tests/backups.py").read_text()
    pages = {(runs.test, runs.pages) for runs in run_by.RUN if "*" not in runs.pages}
    assert [
        (test, page)
        for test, page in pages
        if page.removeprefix("docs/") not in (ROOT / test).read_text() + backups_module
    ] == []
    assert all((ROOT / runs.test).exists() for runs in run_by.RUN)


def test_a_block_that_is_run_has_no_reason():
    listed_twice = [
        (page, block.line)
        for page in PAGES
        for block in blocks(PAGES[page])
        if run_by.run_by(page, block) and run_by.checked_for(page, block)
    ]
    assert listed_twice == []


def test_the_test_of_another_project_passes():
    [block] = (block for block in blocks(PAGES["docs/testing-other-projects.rst"]) if block.kind == "python")
    module = types.ModuleType("mine")
    exec(compile(block.text, "docs/testing-other-projects.rst", "exec"), module.__dict__)
    result = unittest.defaultTestLoader.loadTestsFromModule(module).run(unittest.TestResult())
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])


# --- the checks themselves ---


@pytest.mark.parametrize(
    "text",
    [
        "Text::\n\n   make serve\n",
        "::\n\n   make serve\n",
        ".. code-block::\n\n   make serve\n",
        ".. code:: shell\n\n   make serve\n",
        ".. parsed-literal::\n\n   make serve\n",
        ">>> 1\n1\n",
    ],
)
def test_a_block_without_a_language_is_found(text):
    assert unsupported_lines(f"Title\n=====\n\n{text}") == [text.splitlines()[0]]


def test_blocks_are_found_with_their_lines_and_captions():
    listed = "* a list\n\n  .. code-block:: yaml\n     :caption: a.yaml\n\n     a:\n\n       b: 1\n\n  more\n"
    text = f"{listed}\n.. code-block:: text\n\n   x"
    assert [*blocks(text)] == [Block(3, "yaml", "a.yaml", "a:\n\n  b: 1\n"), Block(12, "text", "", "x\n")]
    assert unsupported_lines(text) == []


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("rust", "fn main() {}", "no test runs this block"),
        ("http", "GET /", "no test runs this block"),
        ("ini", "[baremetal]\nenabled = true   # or false", "comment"),
        ("ini", "[baremetal]\nenabled = perhaps", "Unexpected boolean"),
        ("ini", "[placement]\nallocation_conflict_retry_count = -1", "greater than or equal"),
        ("ini", "[placement]\nallocation_conflict_retries = 1", "allocation_conflict_retries"),
        ("ini", "[other]\nallocation_conflict_retry_count = 1", "other"),
        ("ini", "[placement_database]\nconnection = oracle9://host/name", "oracle9"),
        ("ini", "[keystone_authtoken]\nauth_type = none\nuser = placement", "user"),
        ("ini", "[keystone_authtoken]\ntoken_cache_time = long", "invalid literal"),
        ("nova.conf", "[placement]\nauth_type = http_basic\ntoken = secret", "other options"),
        ("/etc/placement/uwsgi.ini", "attach = /bin/true", "not in etc/uwsgi"),
        ("policy.yaml", '"placement:usage": "role:reader"', "the service does not define the rule"),
        ("policy.yaml", '"placement:usages": "role:reader or"', "cannot be parsed"),
        ("clouds.yaml", "clouds: {here: {auth_type: nothing}}", "nothing"),
        ("prometheus.yml", 'scrape_configs: [{job_name: a, static_configs: [{targets: ["a:80"]}]}]', "port 9178"),
        ("yaml", "providers: [{nmae: a}]", "nmae"),
        ("json", "{", "Expecting"),
        ("text", "[baremetal]\nenabled = true", "commands or configuration"),
        ("text", "placement-manage db sync", "commands or configuration"),
        ("console", "placement-manage db sync", "no command"),
        ("console", "$ placement-manage db synch\ndone", "synch"),
        ("/etc/cron.d/placement", "* * * * placement-manage leases sweep", "not a line for cron"),
        ("/etc/cron.d/placement", "* * * * * placement placement-manage leases swept", "swept"),
        ("/etc/logrotate.d/placement", "rotates 14", "not known"),
        ("shell", "placement-mange db sync", "is not known"),
        ("shell", "echo a | xargs placement-ask", "xargs is not known"),
        ("shell", "placement-manage", "no command"),
        ("shell", "for job in a b; do placement-ask claims $job; done", "claims"),
        ("shell", 'echo "$(placement-ask hist a)"', "hist"),
        ("shell", "JOB=a\nplacement-ask claim VCPU=1 --move $JOB", "'a' is not a uuid"),
        ("shell", "for job in a b; do placement-ask claim VCPU=1 --move $job; done", "'a' is not a uuid"),
        ("shell", "HOST=a placement-ask history --olddest a > b 2>&1", "--olddest"),
        ("shell", "placement-ask history \\\n  --olddest a", "--olddest"),
        ("shell", "placement-serve --port none", "not an integer"),
        ("shell", "placement-status upgrade cheque", "cheque"),
        ("shell", "placement-metrics --port 1", "directory"),
        ("shell", "echo 'a", "not complete"),
        ("shell", "openstack resource provider lst", "no such command"),
        ("shell", "openstack server list --limit -1", "--limit"),
        ("shell", "make tests", "no such target"),
        ("shell", "make demo ARGS='--prt 1'", "--prt"),
        ("shell", "pip install '.[mysqlclient,keyston]'", "keyston"),
        ("shell", "apt install apache3", "not in the Makefile"),
        ("shell", "cp etc/uwsgi.ini /etc", "there is no etc/uwsgi.ini"),
        ("shell", ".tox/py3/bin/pytest -n 0 tests/unit/test_none.py", "there is no tests/unit/test_none.py"),
        ("shell", "systemctl enable other", "no unit other"),
        ("shell", "a2enmod php", "no test loads php"),
        ("shell", "runuser -u placement -- placement-manage db up", "up"),
        ("shell", "oslopolicy-validator --namespace other", "the names are"),
        ("shell", "python3 -m jepsen go", "go"),
        ("shell", "python3 compare_with_original.py print", "print"),
        ("shell", "python3 other.py", "not known"),
    ],
)
def test_every_kind_of_error_in_a_block_is_found(kind, text, reason, tmp_path):
    with pytest.raises(Exception, match=re.escape(reason)):
        checks.check("docs/page.rst", Block(1, kind, "", text + "\n"), tmp_path)
