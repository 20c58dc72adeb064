"""The documents refer only to existing things, and describe all of them."""

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
#: The texts of the files in the root that the documents include.
OF_THE_ROOT = [(ROOT / f"{name}.rst").read_text() for name in ("README", "CONTRIBUTING", "CHANGELOG")]
#: All text between double backquotes, with line ends as blanks.
LITERALS = {
    re.sub(r"\s+", " ", literal)
    for text in DOCUMENTS.values()
    for literal in re.findall(r"(?<!`)``([^`]+)``(?!`)", text)
}  # fmt: skip


def named_tests(text):
    """Yield the path and the name of each test that a page names; ``::name`` is in the file named before."""
    path = ""
    for named, test in re.findall(r"``((?:(?:gabbits|jepsen/tests|tests)/[^`:]+)?)(?:::(\w+))?``", text):
        path = named or path
        if named or test:
            yield path, test


def test_every_test_named_in_the_reliability_document_exists():
    named = {*named_tests(DOCUMENTS["reliability.rst"])}
    assert len(named) >= 190
    for path, test in named:
        assert (ROOT / path).is_file(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"


def test_every_decision_record_has_a_unique_number_and_every_reference_exists():
    decisions = {path.name[:4]: path for path in sorted((ROOT / "docs/adr").glob("*.rst"))}
    assert len(decisions) == len(list((ROOT / "docs/adr").iterdir()))
    for number, path in decisions.items():
        assert path.read_text().startswith(f"{int(number)}. "), path.name
    texts = [*DOCUMENTS.values(), *(path.read_text() for path in decisions.values()), *OF_THE_ROOT]
    referred = {
        number
        for text in texts
        for numbers in re.findall(r"\bADR ((?:\d+,? ?)+)", text)
        for number in re.findall(r"\d+", numbers)
    }
    assert {f"{int(number):04}" for number in referred} <= decisions.keys()


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_document_that_is_named_exists(name):
    for named in re.findall(r"``((?:docs|etc)/[\w./-]+\w)``", DOCUMENTS[name]):
        assert (ROOT / named).exists() or list(ROOT.glob(f"{named}-*")), named


PAGES = [
    *("README.rst", "CONTRIBUTING.rst", "CHANGELOG.rst", "jepsen/README.rst"),
    *(f"docs/{name}" for name in sorted(DOCUMENTS)),
    *("docs/adr/*.rst", "docs/api/**/*.rst", "docs/checklists/*.rst"),
]
#: Directories to which paths in pages are relative.
BASES = (ROOT, ROOT / "placement")
#: Directories created by commands of the pages; they may exist with only some of their files.
MADE = {"var", "build"}


def is_path(literal):
    """Whether a literal with a slash is the path of a file or a folder: media types have slashes, too."""
    first = literal.partition("/")[0]
    if first in MADE:
        return False
    return literal.endswith(("/", ".py", ".rst")) or any((base / first).is_dir() for base in BASES)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page):
    dead = {
        f"{path.relative_to(ROOT)}: {named}"
        for path in ROOT.glob(page)
        for named in re.findall(r"``([\w-]+/[\w./-]*)``", path.read_text())
        if is_path(named) and not any((base / named).exists() for base in BASES)
    }
    assert dead == set()


def test_the_map_names_every_checklist():
    names = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/checklists").iterdir()}
    assert set(re.findall(r"``(docs/checklists/[\w-]+\.rst)``", (ROOT / "CONTRIBUTING.rst").read_text())) == names


def test_the_map_has_the_order_of_imports_in_the_linter():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    order = contracts["importlinter:contract:layers"]["layers"].split("\n")
    sentence = f"Imports point down only - ``{' > '.join(filter(None, order))}`` -"
    assert sentence in " ".join((ROOT / "CONTRIBUTING.rst").read_text().split())


def rows(first):
    """Return the first cell and the rest of each row of a table of the architecture, starting at this first cell."""
    table = DOCUMENTS["architecture.rst"].partition(f"\n``{first}`` ")
    return re.findall(r"^``(\w+)`` +(.*)", "".join(table[1:]).partition("\n==")[0], re.MULTILINE)


def test_the_architecture_has_every_field_of_an_extension():
    assert [name for name, _ in rows("name")] == [each.name for each in dataclasses.fields(extension.Extension)]


def test_the_architecture_has_every_extension_and_what_it_requires():
    cells = {name: re.match(r"(?:``\w+``(?:, |  +))*", rest)[0] for name, rest in rows("baremetal")}
    documented = {name: tuple(re.findall(r"\w+", cell)) for name, cell in cells.items()}
    assert documented == {name: each.requires for name, each in extension.installed_extensions().items()}


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


def test_every_text_referred_to_is_in_the_repository():
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


def shown(option):
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
    ours = {
        group or "DEFAULT": {option.name: shown(option) for option in listed} for group, listed in options.list_opts()
    }
    assert documented_options() == ours


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
    served = {f"{method} {path}" for path, methods in routes.TABLE.items() for method in methods}
    assert served | {f"GET {health.PATH}"} <= LITERALS


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
    named = {literal for literal in LITERALS if literal.startswith(("placement:", "baremetal:"))}
    assert named <= {rule.name for rule in rules}


# --- codes, metrics, commands and tables ---


def test_the_documented_error_codes_are_those_of_the_failures():
    for module in pkgutil.walk_packages(placement.__path__, "placement."):
        if not module.name.startswith(("placement.tests", "placement.wsgi.api", "placement.db.migrations")):
            importlib.import_module(module.name)  # modules that declare further failures
    kinds = [errors.Failure]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    for page in ("docs/troubleshooting.rst", "docs/api/protocol.rst"):
        table = (ROOT / page).read_text().partition("\nCodes\n")[2]
        assert set(re.findall(r"^``(placement\.[\w.]+)``", table, flags=re.MULTILINE)) == {kind.code for kind in kinds}


def test_the_documented_metrics_are_those_that_are_exported():
    registry = CollectorRegistry()
    Metrics(lambda: None, extension.installed_extensions().values(), registry)
    counted = {family.name + ("_total" if family.type == "counter" else "") for family in registry.collect()}
    named = set(re.findall(r"\bplacement_[a-z_]+\b", DOCUMENTS["observability.rst"])) - {"placement_database"}
    suffixes = ("_bucket", "_count", "_sum")
    assert counted == {name.removesuffix(next((s for s in suffixes if name.endswith(s)), "")) for name in named}


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
    ours = [*tables.OURS, *(table for each in additions for table in each.tables)]
    assert sorted(re.findall(r"``(\w+)``", created)) == sorted(table.name for table in ours)
    assert len(ours) == 10
    assert set(re.findall(r"(?<!-)\b[0-9a-f]{12}\b", text)) == {schema.HEAD, *schema.COMMON_HEADS}


def test_every_option_of_the_commands_is_documented():
    sources = "".join(path.read_text() for path in (ROOT / "placement/cmd").glob("*.py"))
    options = set(re.findall(r'"(--[a-z][\w-]+)"', sources))
    assert len(options) >= 8
    documented = set(re.findall(r"--[a-z][\w-]+", DOCUMENTS["commands.rst"]))
    assert options <= documented
