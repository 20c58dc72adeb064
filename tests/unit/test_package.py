"""The installed package refuses openstack-placement in the same directory, and its messages name existing extras."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import placement
from placement import package
from tests.clock import PATIENCE

#: The extras that messages name.
NAMED_EXTRAS = {
    name
    for path in Path(placement.__file__).parent.rglob("*.py")
    for name in re.findall(r"package\.install\([\"'](\w+)[\"']\)", path.read_text())
} | {"mysql", "mysqlclient", "postgresql"}
IMPORT_PROGRAM = "import placement.package; print(placement.package.version())"


def distribution(site, name, version, *lines):
    """Install a distribution without files into a directory."""
    information = site / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    head = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}")
    (information / "METADATA").write_text("\n".join([*head, *lines, ""]))


@pytest.fixture
def site(tmp_path):
    """Create a directory in which the package is installed."""
    directory = tmp_path / "site"
    directory.mkdir()
    files = Path(placement.__file__).parent
    for name in ("__init__.py", "package.py"):
        (directory / "placement").mkdir(exist_ok=True)
        shutil.copy(files / name, directory / "placement" / name)
    distribution(directory, package.NAME, "9.8.7")
    return directory


def import_package(tmp_path, *path):
    """Import the package from directories before those of this environment; return the completed process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    argv = [sys.executable, "-c", IMPORT_PROGRAM]
    return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def test_openstack_placement_in_the_same_directory_is_refused_with_a_sentence(site, tmp_path):
    distribution(site, "openstack-placement", "14.0.0")
    result = import_package(tmp_path, site)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        f"ImportError: {site} also contains the distribution openstack-placement, and the two overwrite each other's "
        "files: uninstall openstack-placement and placement-service, then install placement-service again"
    )


def test_the_package_can_be_imported_from_an_archive(site, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", site)
    result = import_package(tmp_path, archive)
    assert (result.returncode, result.stderr) == (0, "")


def test_other_distributions_in_the_directory_are_not_refused(site, tmp_path):
    for name in ("osc-placement", "openstackclient"):
        distribution(site, name, "1.0")
    result = import_package(tmp_path, site)
    assert (result.returncode, result.stdout, result.stderr) == (0, "9.8.7\n", "")


def test_openstack_placement_of_the_system_does_not_affect_a_virtual_environment(site, tmp_path):
    """Neither overwrites files of the other, and Python finds this package first."""
    system = tmp_path / "dist-packages"
    distribution(system, "openstack-placement", "14.0.0")
    (system / "placement").mkdir()
    (system / "placement" / "__init__.py").write_text("raise SystemExit('the original')\n")
    result = import_package(tmp_path, site, system)
    assert (result.returncode, result.stdout, result.stderr) == (0, "9.8.7\n", "")


# --- extras ---


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Return a function that installs a package named like this one, with lines of metadata."""

    def install(*lines):
        distribution(tmp_path, "with-extras", "1.0", *lines)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(package, "NAME", "with-extras")

    return install


def test_the_command_for_an_extra_names_the_requirements_of_the_extra(declare):
    declare(
        "Requires-Dist: always>=1",
        'Requires-Dist: first>=2,<3; extra == "more"',
        'Requires-Dist: second[binary]; extra == "more"',
        'Requires-Dist: third; extra == "much-more"',
    )
    assert package.install_command("more") == f"{package.command('pip')} install 'first>=2,<3' 'second[binary]'"


@pytest.mark.parametrize("executable", ["/usr/bin/python3", "", None])
def test_the_command_installs_into_the_environment_of_the_program(declare, tmp_path, monkeypatch, executable):
    """A Python inside a web server may not know its executable, or name the system's."""
    declare('Requires-Dist: first; extra == "more"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", executable)
    assert package.install_command("more") == f"{tmp_path}/bin/pip install first"


def test_uninstalled_code_can_be_installed_from_its_directory(monkeypatch):
    monkeypatch.setattr(package, "NAME", "no-such-package")
    assert package.install_command("metrics") == "pip install '.[metrics]', in a checkout"


def test_an_extra_that_the_metadata_lacks_can_be_installed_from_the_directory(declare):
    """An editable installation has the metadata of its creation and the current code."""
    declare("Requires-Dist: always>=1", 'Requires-Dist: first; extra == "more"')
    assert package.install_command("newer") == "pip install '.[newer]', in a checkout"


@pytest.mark.parametrize("extra", sorted(NAMED_EXTRAS))
def test_the_extras_that_messages_name_exist(extra):
    assert extra in importlib.metadata.metadata(package.NAME).get_all("Provides-Extra")
    assert ">=" in package.install_command(extra)
