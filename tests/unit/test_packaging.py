"""setup.cfg declares the requirements of the code, and the distributions contain every declared file."""

import ast
import configparser
import importlib
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest

from placement import extension
from tests import servers
from tests.clock import PATIENCE

ROOT = pathlib.Path(__file__).parent.parent.parent
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENTRY_POINTS = [
    line.partition("=")[2].strip()
    for group in SETUP["options.entry_points"].values()
    for line in group.splitlines()
    if line.strip()
]
PACKAGE = ROOT / "placement"
#: Modules that are imported only if an extra is installed.
OPTIONAL = {
    "keystone": {PACKAGE / "middleware" / "keystone.py", PACKAGE / "middleware" / "keystone_check.py"},
    "metrics": {
        PACKAGE / "metrics" / f"{name}.py" for name in ("instruments", "definitions", "directory", "allocated_file")
    },
    "opentelemetry": {*(PACKAGE / "tracing").glob("*.py")} - {PACKAGE / "tracing" / "__init__.py"},
    "osc": set((PACKAGE / "extensions/terminal/openstack").rglob("*.py")),
    "postgresql": {PACKAGE / "db/engine/bounded_psycopg.py"},
    "testing": {PACKAGE / "direct.py", PACKAGE / "testing.py", *(PACKAGE / "tests").rglob("*.py")},
}


def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def required_distributions(text):
    """Return the distributions named in lines of requirements."""
    return {normalize(re.match(r"[\w.-]+", line).group()) for line in text.split("\n") if line.strip()}


def top_level_imports(path):
    """Yield the top-level packages that the module imports outside of functions."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_every_entry_point_is_callable_or_an_extension(entry_point):
    module, _, name = entry_point.partition(":")
    value = getattr(importlib.import_module(module), name)
    assert callable(value) or value is extension.installed_extensions()[value.name]


def imported_distributions(paths, preferred=frozenset()):
    """Return the distributions that the modules import; if several provide a package, a preferred one."""
    modules = {name for path in paths for name in top_level_imports(path)} - set(sys.stdlib_module_names)
    distributions = importlib.metadata.packages_distributions()
    alternatives = [{*map(normalize, distributions[name])} for name in modules - {"placement"}]
    return {min(names & preferred or names) for names in alternatives}


def test_the_requirements_match_the_imports_of_the_service():
    always = set(PACKAGE.rglob("*.py")).difference(*OPTIONAL.values())
    assert imported_distributions(always) == required_distributions(SETUP["options"]["install_requires"])


@pytest.mark.parametrize("extra", OPTIONAL)
def test_an_extra_requires_the_imports_of_its_modules(extra):
    declared = required_distributions(SETUP["options.extras_require"][extra])
    additional = imported_distributions(OPTIONAL[extra], declared) - required_distributions(
        SETUP["options"]["install_requires"]
    )
    assert additional
    assert additional <= declared


def test_all_files_of_the_package_are_packaged():
    data_files = {
        path
        for package, patterns in SETUP["options.package_data"].items()
        for pattern in patterns.replace(" ", "").split(",")
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    files = {path for path in (ROOT / "placement").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    importable = {path for path in files if path.suffix == ".py" and (path.parent / "__init__.py").exists()}
    assert files - importable - data_files == set()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_serve_announces_slow_steps():
    """Without an announcement, half a minute of silence looks like a hang."""
    result = subprocess.run(
        ["make", "--dry-run", "--always-make", "serve"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    echoes = [index for index, line in enumerate(result.stdout.splitlines()) if line.startswith("echo ")]
    slow = [
        index for index, line in enumerate(result.stdout.splitlines()) if "venv .venv" in line or "pip install" in line
    ]
    assert len(slow) == 2
    assert {index - 1 for index in slow} <= set(echoes)


def test_a_release_fails_if_a_python_version_is_missing(tmp_path):
    """Only uv is on the path, and it finds no Python."""
    uv = shutil.which("uv", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]))
    if uv is None:
        raise servers.Missing("uv is not installed: `pip install uv`")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").symlink_to(uv)
    environment = {"PATH": str(tmp_path / "bin"), "PYENV_ROOT": str(tmp_path), "UV_PYTHON_INSTALL_DIR": str(tmp_path)}
    script = [sys.executable, ROOT / "tools" / "distributions.py", "--every-python"]
    result = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stderr) == (1, "Not installed: Python 3.10, 3.11, 3.12, 3.13, 3.14.\n")


# --- the distributions -----------------------------------------------------------------------------------------------


def git_files():
    """Return the names of the files in the repository, or None outside of a repository."""
    try:
        output = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in output.stdout.splitlines() if (ROOT / name).is_file()]


def build(kind, source, target):
    """Run the build backend in ``source``, without isolation; return the path of the distribution."""
    script = f"import sys, setuptools.build_meta as backend; print(backend.build_{kind}(sys.argv[1]))"
    result = subprocess.run(
        [sys.executable, "-c", script, str(target)],
        cwd=source,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return target / result.stdout.splitlines()[-1]


#: The version of distributions that are built from files alone: no repository, no tag.
VERSION = PYPROJECT["tool"]["setuptools_scm"]["fallback_version"]
CLIENT = tomllib.loads((ROOT / "client/pyproject.toml").read_text())
#: One process builds the distributions and runs all their tests.
built_once = pytest.mark.xdist_group("distributions")


def test_the_client_has_the_version_of_the_service():
    versions = CLIENT["tool"]["setuptools_scm"]
    assert versions == {"root": "..", **PYPROJECT["tool"]["setuptools_scm"]}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Return the directory of the unpacked source distribution of the files in the repository."""
    for requirement in PYPROJECT["build-system"]["requires"]:
        name, _, oldest = requirement.partition(">=")
        version = importlib.metadata.version(name) if importlib.util.find_spec(name.replace("-", "_")) else "0"
        if tuple(map(int, re.findall(r"\d+", version))) < tuple(map(int, oldest.split("."))):
            raise servers.Missing(f"{requirement} is needed")
    files = git_files()
    if files is None:
        if (ROOT / ".git").exists():
            raise servers.Missing("git is not installed, or refuses the repository of another user")
        pytest.skip("not a repository")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    with tarfile.open(build("sdist", source, target)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # missing in Python 3.11.2 of Debian 12
        archive.extractall(target)
    (unpacked,) = (path for path in target.iterdir() if path.is_dir())
    return unpacked


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """Return the directory of the unpacked wheel, built from the source distribution."""
    target = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build("wheel", sdist, target)) as archive:
        archive.extractall(target)
    return target


@built_once
def test_the_sdist_has_all_files_of_the_repository(sdist):
    packed = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    assert set(git_files()) - packed == set()
    assert not any(name.endswith((".pyc", ".sqlite")) for name in packed)


@built_once
def test_the_wheel_has_the_package_the_samples_and_the_licence(wheel):
    packed = {str(path.relative_to(wheel)) for path in wheel.rglob("*") if path.is_file()}
    samples = f"placement_service-{VERSION}.data/data/share/placement"
    expected = {name for name in git_files() if name.startswith("placement/")}
    expected |= {f"{samples}/{name}" for name in git_files() if name.startswith("etc/")}
    assert expected - packed == set()
    assert any(
        name.startswith(f"placement_service-{VERSION}.dist-info/") and name.endswith("/LICENSE") for name in packed
    )
    assert not any(name.startswith(("tests/", "bench/", "jepsen/", "tools/")) for name in packed)


@built_once
@pytest.mark.parametrize(("project", "package"), [(".", "placement"), ("client", "placement_client")])
def test_a_wheel_has_no_file_of_an_earlier_build(sdist, project, package, tmp_path):
    """Otherwise ``pip install .`` could install a migration of the commit that was installed before."""
    stale = sdist / project / "build/lib" / package / "removed.py"
    stale.parent.mkdir(parents=True, exist_ok=True)
    stale.touch()
    with zipfile.ZipFile(build("wheel", sdist / project, tmp_path)) as archive:
        assert f"{package}/__init__.py" in archive.namelist()
        assert f"{package}/removed.py" not in archive.namelist()


@built_once
def test_the_commands_of_the_wheel_run(wheel, tmp_path):
    environment = os.environ | {
        "PYTHONPATH": str(wheel),
        "OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path}/placement.sqlite",
    }

    def run(command, *arguments):
        return subprocess.run(
            [sys.executable, "-m", f"placement.cmd.{command}", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )

    assert run("serve", "--version").stdout == f"{VERSION}\n"
    assert "setup plugin" not in run("manage", "db", "sync").stderr
    assert (tmp_path / "placement.sqlite").stat().st_size


@built_once
def test_the_wheel_installs_the_wsgi_script(wheel):
    """Installers write the path of Python into its first line."""
    [script] = wheel.glob("*.data/scripts/placement-api")
    first, _, body = script.read_text().partition("\n")
    assert first == "#!python"
    assert body == (ROOT / "bin/placement-api").read_text().partition("\n")[2]
