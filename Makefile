# `make help` lists the commands. Recipes use relative paths, because the folder's path may contain spaces.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Project folders have the names of their packages, so Python must not import from the working directory.
export PYTHONSAFEPATH := 1

# Through a pooler: the whole of a service, the gateway's notices, the days of events, all pods together. Plans are those
# of PostgreSQL 18, and one proxy of a test speaks no TLS.
POOLED = svc-tickets/tests gateway/tests/http/test_revocation.py svc-webhooks/tests/dispatch/test_deliveries.py \
  deploy/k8s/tests/test_system.py \
  --deselect svc-tickets/tests/tickets/test_listing_tickets.py::test_a_page_is_read_from_its_index_and_looks_at_no_other_companys_rows \
  --deselect svc-tickets/tests/tickets/test_changes_lost.py::test_a_connection_lost_around_the_commit_reports_the_true_outcome

.DEFAULT_GOAL := help
.PHONY: help run demo test coverage repeat platform poolers alarms lint quick bench bench-console bench-companies soak soak-clock soak-copies soak-rolls soak-sdk soak-events hostile install install-test proto openapi sdk schemas templates pictures vendor release-contracts k8s census lock sbom version images

help:  ## Show this page
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 19

run: install  ## Start everything on this machine; Ctrl-C stops it, the data stay
	@.venv/bin/python -m makeready_local

demo: install  ## A system and a receiver: a minute of signed deliveries, a failure and its retry (ARGS=--once: and no more)
	@.venv/bin/python -m makeready_local.webhook_demo $(ARGS)

test: install-test  ## Every test, in shards; with ARGS one run of pytest (ARGS='svc-tickets/tests -m "not slow"')
	@.venv/bin/python .ci/test.py $(ARGS)

coverage: install-test  ## The share of lines and branches that the tests reach, in all processes (ARGS as for test)
	@rm -rf .venv/coverage && mkdir .venv/coverage
	@status=0; COVERAGE_FILE='$(CURDIR)/.venv/coverage/data' .venv/bin/coverage run .ci/test.py $(ARGS) || status=$$?; \
	  COVERAGE_FILE='$(CURDIR)/.venv/coverage/data' .venv/bin/coverage combine -q && \
	  COVERAGE_FILE='$(CURDIR)/.venv/coverage/data' .venv/bin/coverage report && exit $$status

repeat: install-test  ## Run each shard N times, one by one; prints failures and figures (N=20, ARGS=folders or files)
	@.venv/bin/python .ci/test.py --repeat $(or $(N),20) $(ARGS)

platform: install-test  ## The tests that need more than wheels of the machine (CONTRIBUTING.md has the list): they fail without
	@MAKEREADY_REQUIRE=base-image,docker,kubectl,npm,packages,podman,release-before .venv/bin/python -m pytest \
	  bench/tests/test_bench.py deploy/k8s/tests deploy/local/tests/test_servers.py \
	  gateway/tests/http/test_oldest_dependencies.py \
	  tests/e2e/test_beside_the_release.py tests/e2e/test_framework_receivers.py tests/e2e/test_typescript_client.py \
	  sdk/typescript/tests $(ARGS)
	@$(MAKE) --no-print-directory poolers

poolers: install-test  ## The services' tests on Debian's PostgreSQL with TLS (verify-full), through PgBouncer in both modes
	@MAKEREADY_REQUIRE=pgbouncer,postgresql-tls .venv/bin/python -m pytest chassis/tests/db
	@for mode in session transaction; do MAKEREADY_TEST_POOLER=$$mode MAKEREADY_REQUIRE=pgbouncer,postgresql-tls \
	  .venv/bin/python -m pytest -m 'not plans' $(POOLED) || exit 1; done

lint: install-test  ## Style, types, import contracts, contracts between services, generated files
	@.venv/bin/python .ci/lint.py

quick: install-test  ## The checks of lint that take seconds: style, imports, contracts, forbidden content
	@.venv/bin/python .ci/lint.py quick

bench: install-test  ## Measure us beside monoliths; writes performance.md, its picture, plans.md, and figures of capacity.md, in docs
	@.venv/bin/python -m harness $(ARGS)

bench-console: install-test  ## People on the console beside the API, and its pages; writes docs/performance-console.md
	@.venv/bin/python -m harness.people $(ARGS)

bench-companies: install-test  ## 10,000 companies with a million units on one machine: CPU, memory, disk (a quarter of an hour)
	@.venv/bin/python -m harness.companies $(ARGS)

soak: install-test  ## Webhooks under kills: a kill -9 every few seconds, every delivery accounted for (10 minutes)
	@PYTHONPATH=. .venv/bin/python -m tests.chaos.soak $(ARGS)

soak-copies: install-test  ## Copies by /changes under kills: every record equal to the lists, to the byte (30 minutes)
	@PYTHONPATH=. .venv/bin/python -m tests.chaos.mirror $(ARGS)

soak-clock: install-test  ## Advances of a sandbox's clock under 200 kills: each event once, at its instant (about 10 minutes)
	@PYTHONPATH=. .venv/bin/python -m tests.chaos.clock_kills $(ARGS)

soak-rolls: install-test  ## Replicas rolled, frozen, killed and lost, in the times of the Kubernetes manifests (4 minutes)
	@MAKEREADY_ROLLS_SCALE=1 .venv/bin/python -P -m pytest -q tests/chaos/test_pods_roll.py

alarms: install-test  ## Fires every alarm once, in real processes (5 minutes; needs promtool, of the package prometheus)
	@MAKEREADY_ALARMS=1 MAKEREADY_REQUIRE=alarms,promtool .venv/bin/python -P -m pytest -q deploy/k8s/tests/test_monitoring.py \
	  tests/chaos/test_alarms.py gateway/tests/http/test_alarms_of_budgets.py $(ARGS)
	@MAKEREADY_REQUIRE=promtool .venv/bin/python -P -m pytest -q chassis/tests/db/test_clocks.py console/tests/test_readiness.py \
	  -k fires_for_real

soak-events: install-test  ## /events under eight killed writers (200,000 events), and a replay of 10,000 (about 15 minutes)
	@MAKEREADY_FEED_EVENTS=$(or $(N),200000) MAKEREADY_REPLAYED_EVENTS=10000 .venv/bin/python -m pytest -q -s \
	  svc-webhooks/tests/feed/test_many_events.py $(ARGS)

soak-sdk: install-test  ## Client libraries: 10,000 tickets walked with one key; 500 creates under 20 kills (5 minutes)
	@MAKEREADY_SDK_TICKETS=10000 MAKEREADY_SDK_CREATES=500 MAKEREADY_SDK_KILLS=20 .venv/bin/python -m pytest -q \
	  tests/e2e/test_sdk_python.py tests/chaos/test_sdk_python.py $(ARGS)

hostile: install-test  ## Memory of the gateway and of the console under 5,000 hostile connections, and floods of forms and pages (minutes)
	@MAKEREADY_HOSTILE_CONNECTIONS=5000 .venv/bin/python -m pytest -q -s gateway/tests/http/test_hostile_connections.py console/tests/test_hostile_connections.py

install:
	@. .ci/python && "$$PYTHON" deploy/local/install.py run

install-test:
	@. .ci/python && "$$PYTHON" deploy/local/install.py test

proto: install-test  ## Format the contracts and generate their code
	@.venv/bin/buf format -w proto
	@.venv/bin/python -P proto/generate.py

openapi: install-test  ## Write the records' schemas, the OpenAPI document, the reference and the clients' code anew
	@.venv/bin/python -m reference

sdk: install-test  ## Build the distributions of the client libraries into sdk/dist, the same bytes every time
	@.venv/bin/python sdk/build.py

schemas: install-test  ## Write each context's schema as SQL anew, as its migrations make it
	@.venv/bin/python -m testkit.schemas

templates: install-test  ## Break the lines of the console's templates that are longer than 140 columns
	@.venv/bin/python -P .ci/templates.py write

pictures: install-test  ## Pictures of the console's pages with the demo company, into pictures; those of documents into docs/console (needs Chromium)
	@.venv/bin/python -m testkit.pictures $(ARGS)

vendor: install-test  ## Fetch the console's scripts of others anew from npm, and check their integrity
	@.venv/bin/python -m console.vendor

release-contracts: install-test  ## Keep contracts and schemas as released: later ones may not break them
	buf build proto --exclude-source-info -o proto/released.binpb
	@.venv/bin/python -m reference release
	rm -f proto/allowed.toml
	@.venv/bin/python -m testkit.schemas release
	@.venv/bin/python -m testkit.settings_gate release

k8s: install-test  ## Check the Kubernetes manifests and the image's recipe; render them where kubectl is
	@.venv/bin/python -m pytest -q deploy/k8s/tests $(ARGS)

sbom: install-test  ## Write the bill of materials of the image anew, deploy/sbom.cdx.json (CycloneDX)
	@.venv/bin/python -P .ci/sbom.py

version: install-test  ## Write the version of a release into every artefact (V=0.3.0)
	@.venv/bin/python -P .ci/version.py $(V)
	@.venv/bin/python -P .ci/sbom.py

images: install-test  ## Write the digests of pushed images into the manifests (D='makeready=sha256:…')
	@.venv/bin/python -P .ci/version.py images $(D)

census:  ## How much there is to carry: files, lines, words, contracts, long functions (ARGS=COMMIT counts a commit)
	@.venv/bin/python -P .ci/census.py $(ARGS)

lock:  ## Choose the versions of all dependencies anew (needs uv)
	uv lock --upgrade
	uv export -q --frozen $(addprefix --package makeready-,workspace local) \
	  --no-emit-workspace --no-header --no-annotate -o requirements.lock
	uv export -q --frozen --all-packages --all-extras --no-emit-workspace --no-header --no-annotate -o requirements-dev.lock
	uv export -q --frozen $(addprefix --package makeready-,workspace cli gateway console svc-catalog svc-tickets svc-occupancy svc-webhooks) \
	  --no-emit-workspace --no-header --no-annotate -o deploy/requirements.lock
