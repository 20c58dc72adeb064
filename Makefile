# The targets.  tox.ini defines how each gate is run.
#
#   make serve       run the service on 127.0.0.1:8778 with a SQLite file in ./var   (ARGS='--port 9000' for its options)
#   make demo        run it with a small cloud to click through, in a database in memory
#   make check       the inner loop, below three minutes: style, types, layers, then the unit tests, those of the search
#                    and of the documents, and the gabbits, on SQLite   (ARGS='-k claim' for pytest's)
#   make test        lint, and beside it the tests, each on SQLite, MariaDB or PostgreSQL and those of locks and SQL on
#                    all three; with ARGS='-k claim' for pytest only those tests, without lint
#   make jepsen      the tests of jepsen/: Galera, pairs, several hosts, planted faults   (ARGS='-k galera' for pytest's)
#   make test-long   all tests of make test and make jepsen on every database, Galera included, with longer searches
#   make test-nova   nova's functional tests of its Placement client on this service   (ARGS=nova.tests.functional.libvirt)
#   make servers     install from Debian's packages the programs that tests use (MariaDB with Galera and rsync, PostgreSQL,
#                    SQLite's client, memcached, Apache, haproxy, socat, procps, iproute2, Chromium, libfaketime, systemd, zsh, fish,
#                    podman, debootstrap, Go, Java) and what mod_wsgi, mysqlclient and systemd-python are compiled with; starts none
#   make lint        style, types, layers, spelling, security, warnings of the documents
#   make docs        the documents as HTML, in build/docs
#   make dist        sdists, wheels and SBOM in build/dist, checked; the wheels are tried on every Python from 3.10 to 3.14 that is
#                    found   (ARGS=--every-python fails if one is not)
#   make changelog   what has changed since the last release; ARGS=1.0.0 makes that the notes of the release 1.0.0
#   make samples     regenerate etc/placement/*.sample and docs/api/generated from the code
#   make image       the image localhost/placement, with podman or docker   (ARGS='--build-arg BASE=...' for its build)
#   make bench       measure a running server: that of `make serve`, or others   (ARGS='--help')
#   make clean       remove what the other targets made, except ./var

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
	@echo "Making the cloud ..."
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

# With ARGS only the tests of tests/ that they choose; make jepsen ARGS=--hypothesis-profile=long has the others.
# One test may take more than the 20 minutes after which a shorter run ends as hanging.
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

# Only the format of Docker has a health check.
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
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none is in PATH (or: make PYTHON=...)"; exit 1; }
	@echo "Making a virtual environment in .venv ..."
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "On Debian: apt install python3-venv"; exit 1; }

.venv/service: .venv/pyvenv.cfg setup.cfg pyproject.toml
	@echo "Installing the service and what it needs into .venv: the first time this takes half a minute or more ..."
	@.venv/bin/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/gates: .venv/pyvenv.cfg Makefile
	@echo "Installing tox into .venv ..."
	@.venv/bin/pip install --quiet --disable-pip-version-check 'tox>=4.22' tox-uv
	@touch $@
