"""The documentation names only existing objects, and describes all options, routes, rules, metrics and tables."""

from __future__ import annotations

import configparser
import dataclasses
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from oslo_policy import policy
from prometheus_client import CollectorRegistry

import placement
from placement import conf as options
from placement import deploy, errors, extension, routes
from placement.cmd import manage
from placement.db.schema import schema, tables
from placement.metrics.definitions import Metrics
from placement.middleware import health
from tests import web

ROOT = Path(__file__).parents[2]
#: The pages by their paths below docs.
DOCUMENTS = {
    path.relative_to(ROOT / "docs").as_posix(): path.read_text()
    for pages in ("*.rst", "extensions/*.rst")
    for path in (ROOT / "docs").glob(pages)
}
#: The text of the files in the root that pages include.
ROOT_TEXTS = [(ROOT / f"{name}.rst").read_text() for name in ("README", "CONTRIBUTING", "CHANGELOG")]
#: Every text between double backquotes, on one line.
LITERALS = {
    re.sub(r"\s+", " ", literal)
    for text in DOCUMENTS.values()
    for literal in re.findall(r"(?<!`)``([^`]+)``(?!`)", text)
}  # fmt: skip


def named_tests(text):
    """Yield the path and the name of each test in a page; ``::name`` alone is in the file named before it."""
    path = ""
    for file, test in re.findall(r"``((?:(?:gabbits|jepsen/tests|tests)/[^`:]+)?)(?:::(\w+))?``", text):
        path = file or path
        if file or test:
            yield path, test


def test_every_test_named_in_the_reliability_document_exists():
    references = {*named_tests(DOCUMENTS["reliability.rst"])}
    assert len(references) >= 190
    for path, test in references:
        assert (ROOT / path).is_file(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"


def test_every_decision_record_has_a_unique_number_and_every_reference_exists():
    decisions = {path.name[:4]: path for path in sorted((ROOT / "docs/adr").glob("*.rst"))}
    assert len(decisions) == len(list((ROOT / "docs/adr").iterdir()))
    for number, path in decisions.items():
        assert path.read_text().startswith(f"{int(number)}. "), path.name
    texts = [*DOCUMENTS.values(), *(path.read_text() for path in decisions.values()), *ROOT_TEXTS]
    referenced = {
        number
        for text in texts
        for numbers in re.findall(r"\bADR ((?:\d+,? ?)+)", text)
        for number in re.findall(r"\d+", numbers)
    }
    assert {f"{int(number):04}" for number in referenced} <= decisions.keys()


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_document_that_is_named_exists(name):
    for path in re.findall(r"``((?:docs|etc)/[\w./-]+\w)``", DOCUMENTS[name]):
        assert (ROOT / path).exists() or list(ROOT.glob(f"{path}-*")), path


PAGES = [
    *("README.rst", "CONTRIBUTING.rst", "CHANGELOG.rst", "jepsen/README.rst"),
    *(f"docs/{name}" for name in sorted(DOCUMENTS)),
    *("docs/adr/*.rst", "docs/api/**/*.rst", "docs/checklists/*.rst"),
]
#: Directories to which paths in pages are relative.
BASES = (ROOT, ROOT / "placement")
#: Directories created by commands of the pages; they may exist with only some of their files.
GENERATED = {"var", "build"}


def is_path(literal):
    """Whether a literal with a slash is the path of a file or directory, and not a media type."""
    directory = literal.partition("/")[0]
    if directory in GENERATED:
        return False
    return literal.endswith(("/", ".py", ".rst")) or any((base / directory).is_dir() for base in BASES)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page):
    missing = {
        f"{path.relative_to(ROOT)}: {file}"
        for path in ROOT.glob(page)
        for file in re.findall(r"``([\w-]+/[\w./-]*)``", path.read_text())
        if is_path(file) and not any((base / file).exists() for base in BASES)
    }
    assert missing == set()


def test_the_contributing_page_names_every_checklist():
    names = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/checklists").iterdir()}
    assert set(re.findall(r"``(docs/checklists/[\w-]+\.rst)``", (ROOT / "CONTRIBUTING.rst").read_text())) == names


def test_the_contributing_page_has_the_order_of_imports_in_the_linter():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    order = contracts["importlinter:contract:layers"]["layers"].split("\n")
    sentence = f"Imports point down only - ``{' > '.join(filter(None, order))}`` -"
    assert sentence in " ".join((ROOT / "CONTRIBUTING.rst").read_text().split())


def rows(first):
    """Return the first cell and the other text of each row in the architecture's table whose first row is ``first``."""
    table = DOCUMENTS["architecture.rst"].partition(f"\n``{first}`` ")
    return re.findall(r"^``(\w+)`` +(.*)", "".join(table[1:]).partition("\n==")[0], re.MULTILINE)


def test_the_architecture_has_every_field_of_an_extension():
    assert [name for name, _ in rows("name")] == [field.name for field in dataclasses.fields(extension.Extension)]


def test_the_architecture_has_every_extension_with_its_requirements():
    cells = {name: re.match(r"(?:``\w+``(?:, |  +))*", text)[0] for name, text in rows("baremetal")}
    documented = {name: tuple(re.findall(r"\w+", cell)) for name, cell in cells.items()}
    assert documented == {name: declared.requires for name, declared in extension.installed_extensions().items()}


# --- references from the code ---

SOURCES = {
    path.relative_to(ROOT): path.read_text()
    for folder in ("placement", "tests", "bench", "jepsen", "tools", "gabbits")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".yaml", ".md"}
}


def referred_labels(text):
    """Return the labels in all ``(docs: label, label)`` of a text, which may span several lines of a comment."""
    for labels in re.findall(r"\(docs:\s+([^;)]*)", re.sub(r"\n\s*(#:?|//)? *", " ", text)):
        yield from labels.split(", ")


def test_every_reference_to_the_documentation_is_to_a_section_that_exists():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.rst"))
    targets = set(re.findall(r"^\.\. _([\w-]+):$", pages, flags=re.MULTILINE))
    dangling = {
        f"{path}: {label}" for path, text in SOURCES.items() for label in referred_labels(text) if label not in targets
    }
    assert dangling <= {f"{Path(__file__).relative_to(ROOT)}: label"}


def test_no_text_refers_to_a_contract_outside_the_repository():
    foreign = re.compile("contract" r" (section )?\d|wire contract|the contract\b")
    texts = SOURCES | {path.relative_to(ROOT): path.read_text() for path in (ROOT / "docs").rglob("*.rst")}
    this = Path(__file__).relative_to(ROOT)
    assert [path for path, text in texts.items() if path != this and foreign.search(text)] == []


# --- options ---


def documented_options():
    """Return the text in parentheses after each option, by group and option."""
    sections = re.split(r"^\[(\w+)\]\n=+$", DOCUMENTS["configuration.rst"], flags=re.MULTILINE)[1:]
    return {
        group: dict(re.findall(r"^``(\w+)`` \((.*)\)$", text, flags=re.MULTILINE))
        for group, text in zip(sections[::2], sections[1::2], strict=True)
    }


def documented_default(option):
    """Return the default of an option as the document writes it."""
    if option.name == "pybasedir":
        return "the directory of the package"
    if option.required:
        return "required"
    if option.default == "":
        return "empty"
    if isinstance(option.default, list):
        return ",".join(option.default)
    return str(option.default).lower() if isinstance(option.default, bool | None) else str(option.default)


def test_the_documented_options_and_defaults_are_those_of_the_service():
    defaults = {
        group or "DEFAULT": {option.name: documented_default(option) for option in group_options}
        for group, group_options in options.list_opts()
    }
    assert documented_options() == defaults


def test_the_documented_options_of_libraries_exist():
    conf = web.configuration()
    text = DOCUMENTS["configuration.rst"].partition("Options of libraries\n")[2].partition("Authentication\n==")[0]
    entries = re.findall(r"^``\[(\w+)\]``\n((?:  .*\n)+)", text, flags=re.MULTILINE)
    assert {group for group, _ in entries} == {
        "keystone_authtoken",
        "oslo_policy",
        "oslo_middleware",
        "cors",
        "healthcheck",
        "profiler",
    }
    for group, entry in entries:
        for name in re.findall(r"``([a-z_]{6,})``", entry):
            if group in conf and name not in {"disable_by_file", "http_basic"}:
                assert name in conf[group], f"[{group}]{name}"


# --- routes and rules ---


def test_every_route_is_documented():
    operations = {f"{method} {path}" for path, methods in routes.TABLE.items() for method in methods}
    assert operations | {f"GET {health.PATH}"} <= LITERALS


def test_the_documented_policy_rules_are_those_of_the_service():
    rows = dict(re.findall(r"^``([\w:]+)`` +``(.*?)``$", DOCUMENTS["policy.rst"], flags=re.MULTILINE))
    rules = deploy.list_rules()
    for rule in rules:
        if isinstance(rule, policy.DocumentedRuleDefault):
            assert rule.name in LITERALS
            for operation in rule.operations:
                assert f"{operation['method']} {operation['path']}" in LITERALS
        else:
            assert rows[rule.name] == rule.check_str
    names = {literal for literal in LITERALS if literal.startswith(("placement:", "baremetal:"))}
    assert names <= {rule.name for rule in rules}


# --- codes, metrics, commands and tables ---


def test_the_documented_error_codes_are_those_of_the_failures():
    for module in pkgutil.walk_packages(placement.__path__, "placement."):
        if not module.name.startswith(("placement.tests", "placement.wsgi.api", "placement.db.migrations")):
            importlib.import_module(module.name)  # modules that declare further failures
    failure_types = [errors.Failure]
    for failure_type in failure_types:
        failure_types.extend(failure_type.__subclasses__())
    for page in ("docs/troubleshooting.rst", "docs/api/protocol.rst"):
        table = (ROOT / page).read_text().partition("\nCodes\n")[2]
        assert set(re.findall(r"^``(placement\.[\w.]+)``", table, flags=re.MULTILINE)) == {
            failure_type.code for failure_type in failure_types
        }


def test_the_documented_metrics_are_those_that_are_exported():
    registry = CollectorRegistry()
    Metrics(lambda: None, extension.installed_extensions().values(), registry)
    exported = {family.name + ("_total" if family.type == "counter" else "") for family in registry.collect()}
    documented = set(re.findall(r"\bplacement_[a-z_]+\b", DOCUMENTS["observability.rst"])) - {"placement_database"}
    suffixes = ("_bucket", "_count", "_sum")
    assert exported == {name.removesuffix(next((s for s in suffixes if name.endswith(s)), "")) for name in documented}


def commands(run):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    scripts = setup["options.entry_points"]["console_scripts"].split("\n")
    yield from (line.partition("=")[0].strip() for line in scripts if line)
    for group in ("db", "baremetal"):
        actions = re.search(r"\{([\w,]+)\}", run(manage, group).out)[1]
        yield from (f"placement-manage {group} {action}" for action in actions.split(","))


def test_every_command_is_documented(monkeypatch, in_process):
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "sqlite://")
    for command in commands(in_process):
        assert any(literal == command or literal.startswith(f"{command} ") for literal in LITERALS), command


def test_every_table_and_column_is_documented():
    text = DOCUMENTS["database.rst"]
    for table in tables.metadata.tables.values():
        for name in (table.name, *table.columns.keys()):
            assert f"``{name}``" in text, f"{table.name}: {name}"


def test_the_migration_from_another_placement_names_our_tables_and_the_newest_revision():
    text = DOCUMENTS["upgrade.rst"]
    created = text.partition("it creates ten tables")[2].partition(".")[0]
    additions = extension.additions_of(extension.installed_extensions().values())
    own_tables = [*tables.OURS, *(table for addition in additions for table in addition.tables)]
    assert sorted(re.findall(r"``(\w+)``", created)) == sorted(table.name for table in own_tables)
    assert len(own_tables) == 10
    assert set(re.findall(r"(?<!-)\b[0-9a-f]{12}\b", text)) == {schema.HEAD, *schema.COMMON_HEADS}


def test_every_option_of_the_commands_is_documented():
    sources = "".join(path.read_text() for path in (ROOT / "placement/cmd").glob("*.py"))
    options = set(re.findall(r'"(--[a-z][\w-]+)"', sources))
    assert len(options) >= 8
    documented = set(re.findall(r"--[a-z][\w-]+", DOCUMENTS["commands.rst"]))
    assert options <= documented
