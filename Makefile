# Help is made from the words behind ## below.
PYTHON ?= python3
VENV := .venv
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

.DEFAULT_GOAL := help
.PHONY: help setup reproduce test lint gate ui lock clean readme

help: ## show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv from the hashed requirements.lock (with uv when it is there) and ready dvc

$(READY): requirements.lock pyproject.toml
	@bash scripts/setup.sh $(PYTHON) $(VENV)
	@touch $@

reproduce: $(READY) ## the quick study from nothing to a report: plan, dvc repro, publication to MLflow
	@multilab plan study=quick
	@dvc repro -q || { echo "stopped; 'PATH=$(BIN):\$$PATH dvc repro' prints what DVC says about it" >&2; exit 1; }
	@multilab report study=quick --headline

test: $(READY) ## the fast tests (real-data tests run when MULTILAB_DATA is set)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(READY) ## ruff, mypy and the floors of the house
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

gate: $(READY) ## recompute the quick study without caches and compare with the reference numbers
	@multilab gate

ui: $(READY) ## open the MLflow UI on http://127.0.0.1:5000
	@MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow ui --backend-store-uri sqlite:///mlflow.db --workers 1

readme: $(READY) ## make the picture and the table of the README again from the committed report
	@multilab report study=mlwse-core --readme

lock: ## write requirements.lock anew (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --custom-compile-command "make lock" --extra lab --extra dev --quiet pyproject.toml -o requirements.lock

clean: ## remove what the pipeline made here; the store of cells stays
	rm -rf results .plan mlflow.db mlflow.db.lock mlartifacts; git clean -fdxq reports/quick
