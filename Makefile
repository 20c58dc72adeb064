# The targets.  tox.ini defines the commands of each gate.
#
#   make serve       run the service on 127.0.0.1:8778 with a SQLite file in ./var   (ARGS='--port 9000' for its options)
#   make demo        run it with a small example cloud, in an in-memory database
#   make check       the inner loop, below three minutes: style, types, layers, then tests of units, search and documents, and
#                    the gabbits, on SQLite   (ARGS='-k claim' for pytest)
#   make test        lint, and in parallel the tests: most on one of SQLite, MariaDB and PostgreSQL, tests of locks and SQL on
#                    all three; with ARGS='-k claim' for pytest only the selected tests, without lint
#   make jepsen      the tests in jepsen/: Galera, pairs, several hosts, planted faults   (ARGS='-k galera' for pytest)
#   make test-long   all tests of make test and make jepsen on every database, including Galera, with longer searches
#   make test-nova   nova's functional tests of its Placement client on this service   (ARGS=nova.tests.functional.libvirt)
#   make servers     install the Debian packages that tests use, without starting servers (MariaDB with Galera and rsync,
#                    PostgreSQL, SQLite's client, memcached, Apache, haproxy, socat, procps, iproute2, Chromium, libfaketime,
#                    systemd, zsh, fish, podman, debootstrap, Go, Java), and those to compile mod_wsgi, mysqlclient and
#                    systemd-python
#   make lint        style, types, layers, spelling, security, warnings of the documentation build
#   make docs        build the documents as HTML, in build/docs
#   make dist        build and check sdists, wheels and SBOM in build/dist; try the wheels on every installed Python from 3.10
#                    to 3.14   (ARGS=--every-python fails if one is missing)
#   make changelog   show the changes since the last release; with ARGS=1.0.0 write the notes of the release 1.0.0
#   make samples     regenerate etc/placement/*.sample and docs/api/generated from the code
#   make image       build the image localhost/placement, with podman or docker   (ARGS='--build-arg BASE=...')
#   make bench       measure a running server, by default that of `make serve`   (ARGS='--help')
#   make clean       remove everything that the other targets have created, except ./var

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
SUDO = $(if $(filter-out 0,$(shell id -u)),sudo)
TOX = .venv/bin/tox run --quiet
COMMA = ,

.PHONY: serve demo check test jepsen test-long test-nova servers lint docs dist changelog samples image bench clean

serve: .venv/service
	@echo "Starting the service ..."
	@.venv/bin/placement-serve $(ARGS)

demo: .venv/service
	@echo "Creating the cloud ..."
	@.venv/bin/placement-serve --demo $(ARGS)

check: .venv/gates
	$(TOX) -e check -- $(ARGS)

test: .venv/gates
ifdef ARGS
	$(TOX) -e py3 -- $(ARGS)
else
	.venv/bin/tox run-parallel --quiet --parallel-live -e lint,py3
endif

jepsen: .venv/gates
	$(TOX) -e jepsen -- $(ARGS)

# ARGS select from tests/ only; for jepsen/ use make jepsen ARGS=--hypothesis-profile=long.
# A long test may exceed the timeout of 20 minutes for a hanging test.
test-long: .venv/gates
	$(TOX) -e py3$(if $(ARGS),,$(COMMA)jepsen) -- --hypothesis-profile=long -o faulthandler_timeout=7200 $(ARGS)

test-nova: .venv/gates
	$(TOX) -e nova $(if $(ARGS),-- $(ARGS))

lint: .venv/gates
	$(TOX) -e lint

docs: .venv/gates
	$(TOX) -e docs
	@echo "The first page: file://$(CURDIR)/build/docs/index.html"

dist: .venv/gates
	$(TOX) -e dist -- $(ARGS)

changelog: .venv/gates
	$(TOX) -e changelog -- $(if $(ARGS),--yes --version $(ARGS),--draft --version unreleased)

samples: .venv/gates
	$(TOX) -e samples

# Only Docker's image format supports health checks.
image:
	@$(if $(shell command -v podman),podman build --format docker,docker build) --file Containerfile --tag localhost/placement \
		--label org.opencontainers.image.revision=$(shell git rev-parse HEAD 2>/dev/null) $(ARGS) .

bench: .venv/service
	.venv/bin/python bench/claims.py $(or $(ARGS),http://127.0.0.1:8778)

servers:
	-$(SUDO) apt-get update -qq
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
		mariadb-server rsync postgresql sqlite3 memcached apache2-bin apache2-dev haproxy socat procps iproute2 chromium-headless-shell libapache2-mod-wsgi-py3 gcc libc6-dev python3-dev \
		libmariadb-dev libsystemd-dev pkg-config libfaketime systemd zsh fish golang-go default-jre-headless \
		podman runc netavark aardvark-dns iptables debootstrap debian-archive-keyring

clean:
	rm -rf .venv .tox build *.egg-info client/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is required, but not in PATH; set it with make PYTHON=..."; exit 1; }
	@echo "Creating a virtual environment in .venv ..."
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "On Debian: apt install python3-venv"; exit 1; }

.venv/service: .venv/pyvenv.cfg setup.cfg pyproject.toml
	@echo "Installing the service and its requirements into .venv: the first time this takes half a minute or more ..."
	@.venv/bin/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/gates: .venv/pyvenv.cfg Makefile
	@echo "Installing tox into .venv ..."
	@.venv/bin/pip install --quiet --disable-pip-version-check 'tox>=4.22' tox-uv
	@touch $@
