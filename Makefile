# Shortcuts; each is one command that can be typed as well.
.DEFAULT_GOAL := help
PYTHON ?= $(firstword $(wildcard .venv/bin/python3 /opt/svc-test/bin/python3))
.PHONY: help start stop test unit conventions format docs docs-check pictures lock bench deb

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

start: ## install and start svc on this host, with a first workspace
	packaging/quickstart

stop: ## stop what `make start` started
	packaging/quickstart --stop

test: ## run every suite of the tests
	tests/run

unit: ## run the quick tests
	tests/run unit

conventions: ## check the conventions: lints, types, imports, names, sizes, pages
	tests/run conventions

format: ## format Python and JavaScript as the conventions want it
	.venv/bin/ruff format svc svc_helper tests setup.py
	git ls-files '*.js' '*.cjs' | NODE_PATH=.venv/share/javascript/node_modules xargs .venv/bin/node tests/run.d/javascript/format.cjs

docs: ## write the generated pages again
	$(PYTHON) -m schema.generate
	$(PYTHON) docs/generate.py

docs-check: ## fail when a generated page is out of date
	$(PYTHON) docs/generate.py --check

pictures: ## take the pictures of docs/pictures again, in Chromium
	tests/run --prepare pages
	PYTHONPATH=.:tests .venv/bin/python3 -m pages.pictures

deb: ## build the Debian package into dist/
	packaging/build-deb $(if $(VERSION),--version $(VERSION))

bench: ## print the table of ratios against the Podman command line
	tests/run bench

lock: ## pin the newest Python packages, with hashes (needs pip-tools)
	cd packaging && for part in '' -manual -dev -browser; do pip-compile --quiet --upgrade --generate-hashes --allow-unsafe \
	    --strip-extras --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	    --output-file requirements$$part.lock requirements$$part.in || exit 1; done
