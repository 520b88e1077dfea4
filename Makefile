# make run: the main job. make test: the fast tests; make test-slow: the long ones.
# Set-up happens once, and again when it must.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := src tests benchmarks docs/hooks

.PHONY: run test test-slow lint docs site clean

run: $(STAMP)
	$(BIN)/sememe ladder --out runs/ladder --resume
	@echo "The command sememe is in $(BIN): \". $(BIN)/activate\" puts it on your path."

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" $(PYTEST_ARGS)

# Kills, long trainings, whole ladders, the wheel.
test-slow: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

# The page of all commands is made by the program itself; a test compares the two.
docs: $(STAMP)
	$(BIN)/python docs/hooks/commands.py > docs/commands.md

# The pages as a site, in the folder site/. A link or an anchor that leads nowhere is an error.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sememe needs Python 3.11 or newer: $(PYTHON) is missing or older." \
	         "Try make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV): downloads PyTorch and other packages once, a matter of minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,dev]"
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
