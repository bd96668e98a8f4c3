# Needs Python 3.10-3.13 and make; a Java is among the locked dependencies, for machines without.
# `make install` builds .venv; every other target does it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# dbt has environments of its own, for the tests: its pins must not meet those of sqb.
DBT := $(VENV)-dbt
DBT_OLD := $(VENV)-dbt-1.10

# Bytecode makes each start of the command faster, so it is written whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-dbt demo test test-dbt test-catalogs test-cluster test-rows proof fuzz check format lock clean
.PHONY: bench bench-plan bench-build bench-start bench-life bench-rows bench-dbt

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' \
	  || { echo "sqb needs Python 3.10 to 3.13; try: make PYTHON=python3.12 install" >&2; exit 1; }
	@echo "setting up $(VENV): Python packages, Java, jars (once; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m sqb.spark.java
	@$(BIN)/python -m sqb.spark.jars
	-@$(BIN)/python -m compileall -q $(VENV)/lib src
	@touch $@

install-dbt: $(DBT)/.installed $(DBT_OLD)/.installed

$(DBT)/.installed: requirements-dbt.lock
$(DBT_OLD)/.installed: requirements-dbt-1.10.lock
$(DBT)/.installed $(DBT_OLD)/.installed:
	@echo "setting up $(@D): dbt for the tests (once; a minute)"
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	-@$(@D)/bin/python -m compileall -q $(@D)/lib
	@touch $@

demo: install
	$(BIN)/sqb demo

# Two processes, each with a Spark of its own; a file runs in one of them. A few tests call dbt.
test: install $(DBT)/.installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

# All tests with a real dbt, on each version that is supported, against a thrift server; and a dbt
# whose Spark is in its own process. A quarter of an hour.
test-dbt: install install-dbt
	SQB_TEST_DBT=$(DBT)/bin/dbt $(BIN)/python -m pytest -m "dbt or dbt_long" tests/dbt
	SQB_TEST_DBT=$(DBT_OLD)/bin/dbt $(BIN)/python -m pytest -m "dbt or dbt_long" tests/dbt
	SQB_TEST_DBT=$(DBT)/bin/dbt SQB_TEST_DBT_METHOD=session $(BIN)/python -m pytest -m dbt_long tests/dbt/test_bridge.py

# The execution suite on a Spark Connect server and on a cluster of this machine; some minutes each.
test-cluster: install
	SQB_TEST_SPARK=connect $(BIN)/python -m pytest tests/execution tests/spark/test_connect.py tests/spark/test_elsewhere.py
	SQB_TEST_SPARK=cluster $(BIN)/python -m pytest tests/execution tests/spark/test_cluster.py

# The suites that touch a catalog, on PostgreSQL and on a REST server in each publish mode; and
# builds whose warehouse is in an object store.
test-catalogs: install
	SQB_TEST_STORE=s3 $(BIN)/python -m pytest tests/lake/test_object_store.py
	SQB_TEST_CATALOG=postgres $(BIN)/python -m pytest tests/lake tests/state tests/execution
	SQB_TEST_CATALOG=rest $(BIN)/python -m pytest tests/lake/test_rest.py tests/execution
	SQB_TEST_CATALOG=rest SQB_TEST_PUBLISH=branch $(BIN)/python -m pytest -m "" tests/execution/test_crashes.py tests/execution/test_races.py
	SQB_TEST_CATALOG=rest SQB_TEST_PUBLISH=replace $(BIN)/python -m pytest -m "" tests/execution/test_crashes.py

# Every case of row-level refresh through every step, every script, every crash; half an hour.
proof: install
	SQB_TEST_PROOF=all $(BIN)/python -m pytest -m "proof or not proof" tests/execution/test_rows_cases.py tests/execution/test_rows_engine.py tests/execution/test_crashes.py

# A share of the same, with planted mistakes and random lives: some minutes.
test-rows: install
	$(BIN)/python -m pytest -m proof

# Random queries and changes for SECONDS: first the algebra on DuckDB, then everything on Spark.
SECONDS ?= 600
SEED ?= $(shell date +%s)
fuzz: install
	$(BIN)/python tests/refresh/loop.py --seed $(SEED) --seconds $$(($(SECONDS) / 3))
	$(BIN)/python tests/execution/loop.py --seed $(SEED) --seconds $$(($(SECONDS) * 2 / 3))

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: bench-plan bench-build bench-start

# A long one: a thousand builds on one lake.
bench-life: install
	$(BIN)/python benchmarks/life.py --svg docs/life.svg

bench-plan: install
	$(BIN)/python benchmarks/plan.py

bench-build: install
	$(BIN)/python benchmarks/build.py

bench-start: install
	$(BIN)/python benchmarks/start.py

# Refreshing by rows against rebuilding, at ROWS lines; and the queries of TPC-H.
ROWS ?= 400000
bench-rows: install
	$(BIN)/python benchmarks/rows.py --rows $(ROWS)
	$(BIN)/python benchmarks/tpch.py

# Seeing that a dbt project of 300 and of 3,000 models is current.
bench-dbt: install install-dbt
	$(BIN)/python benchmarks/dbt.py --dbt $(DBT)/bin/dbt

# One lock for all supported Pythons, with markers where they differ; and two for dbt.
COMPILE = $(VENV)-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.10 \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --extra dev pyproject.toml -o requirements.lock
	printf '%s\n' 'dbt-core==1.11.*' 'dbt-spark[session,PyHive]==1.11.*' 'pyspark==4.1.4' \
	  | $(COMPILE) - -o requirements-dbt.lock
	printf '%s\n' 'dbt-core==1.10.*' 'dbt-spark[session,PyHive]==1.10.*' 'pyspark==4.1.4' \
	  | $(COMPILE) - -o requirements-dbt-1.10.lock
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) $(VENV)-lock $(DBT) $(DBT_OLD) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
