# Help is made from the comments after ## below.
PYTHON ?= python3
VENV := .venv
PORT ?= 5000
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export DVC_NO_ANALYTICS := true
export MLFLOW_DISABLE_TELEMETRY := true
export PATH := $(CURDIR)/$(BIN):$(PATH)
MIRROR := $(wildcard ../shared/datasets)
ifeq ($(strip $(MULTILAB_DATA)),)
unexport MULTILAB_DATA
ifneq ($(MIRROR),)
export MULTILAB_DATA := $(abspath $(MIRROR))
endif
endif

unexport PYTHONDONTWRITEBYTECODE # hundreds of tests start a process, and each would compile the package again

.DEFAULT_GOAL := help
.PHONY: help setup setup-arena reproduce test test-slow lint gate ui lock clean clean-mlflow notebooks readme pages docs

help: ## show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv from the hashed requirements.lock (with uv when it is there) and ready dvc

$(READY): requirements.lock pyproject.toml src/multilab/__init__.py # which has the version
	@bash scripts/setup.sh $(PYTHON) $(VENV)
	@touch $@

setup-arena: $(READY) ## the packages of other libraries that are entrants of the arena, from the hashed requirements-arena.lock
	@bash scripts/setup_arena.sh $(VENV)

reproduce: $(READY) ## the quick study from nothing to a report: dvc repro, publication to MLflow
	@dvc repro -q || { echo "stopped; 'PATH=$(BIN):\$$PATH dvc repro' prints the error; of a damaged dvc.lock: git checkout dvc.lock" >&2; exit 1; }
	@multilab study report --study quick --headline
	@multilab study publish --study quick

test: $(READY) ## the fast tests (real-data tests run when MULTILAB_DATA is set)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

test-slow: $(READY) ## the slow tests: pipelines, planted faults of the gate, other kernels
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

lint: $(READY) ## ruff, mypy and the layers
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

gate: $(READY) ## recompute all methods, metrics and the quick study, and compare with the reference numbers
	@multilab gate

ui: $(READY) ## print the addresses of the runs and serve the MLflow UI; another port: make ui PORT=5001
	@$(BIN)/python scripts/mlflow_ui.py $(PORT)

notebooks: $(READY) ## execute the notebooks of the papers and write the ledger of their claims
	@$(BIN)/python scripts/notebooks.py

readme: $(READY) ## regenerate the table of the README from the committed results
	@multilab study report --study mlwse-core --readme

pages: $(READY) ## build the pages of all studies, and the committed summaries, from the committed results (two minutes)
	@multilab study report --all

RESULTS := $(filter-out reports/quick/%,$(wildcard reports/*/SHA256SUMS reports/arena/leaderboard.json.gz))
reports/index.html: $(RESULTS) | $(READY)
	@multilab study report --all

docs: $(READY) reports/index.html ## build the documentation site in docs/_build/html; warnings and dead links are errors, no network is used
	@rm -rf docs/_build/html # pages that are no longer written would be checked too
	@$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/_extensions/site_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

lock: ## regenerate requirements.lock: one version of each package for 3.11 to 3.14 (needs uv)
	uv pip compile --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url \
	  --custom-compile-command "make lock" --extra lab --extra docs --extra dev --extra postgres --quiet pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url \
	  --custom-compile-command "make lock" --extra arena --extra xmc --constraints requirements.lock --overrides scripts/arena-overrides.txt \
	  --quiet pyproject.toml scripts/arena.in -o requirements-arena.lock

clean: ## remove what `make reproduce` makes again; cells, models, searches and runs stay
	rm -rf results data/prepared data/splits; git clean -fdxq reports/quick

clean-mlflow: ## list what mlflow.db and mlartifacts hold (registered models, searches, runs), ask, and delete them
	@$(PYTHON) scripts/clean_mlflow.py
