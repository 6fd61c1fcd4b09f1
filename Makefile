# Variables:
#   PYTHON=python3.12          the Python to start from (3.11 or newer)
#   PHYSICS_OF_LEARNING_PRESET=paper    the sources' own sizes (hours; what is finished is kept), instead of quick
#   NAME=scaling COURSE=folder  which problem set (all), and the course folder (course), of `make assignments` and `make scores`;
#                              NAME also names the chapter of `make paper` and more tests of `make lowest` and `make newest`
#   OVER=versions.txt          versions, as pip freeze prints them, that `make newest` keeps where they are allowed
#   OFFSETS="1000 2000" SAMPLES=4 PAGES=book/part/chapter.md   what `make seeds` adds to seeds, multiplies samples by, and runs
#   TORCH_INDEX=<index URL>    take torch from this package index, for example one with CPU-only wheels
#   CHROMIUM=<path>            the browser for the tests of the built site, if it is not on PATH
export PYTHON TORCH_INDEX
unexport PYTHONPATH PYTHONHOME
bin := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help environment lock book test test-all seeds browser lab assignments scores rehearsal lowest newest paper pdf bench clean

help:
	@echo "make book         build the book into _build/html (the first run installs everything into .venv)"
	@echo "make test         run the tests of lib, every notebook, and the checks of the built site"
	@echo "make test-all     the same with the slow tests, which try again by longer runs what quicker ones hold"
	@echo "make seeds        run the pages with every seed shifted, and say which cells fail (OFFSETS, SAMPLES, PAGES; half an hour)"
	@echo "make browser      test the built site in Chromium, as make test does at its end"
	@echo "make lab          write the pages as plain notebooks into notebooks/ and open them in JupyterLab"
	@echo "make assignments  make the nbgrader course from the problem sets (NAME=scaling for one of them, COURSE=folder)"
	@echo "make scores       print the scores of a graded problem set by question, and write them for Canvas and Moodle (NAME, COURSE)"
	@echo "make rehearsal    do what a launch on Binder does, in an empty environment; print times and memory"
	@echo "make lowest       try lib on the lowest versions that pyproject.toml declares (NAME=tests/fields: these tests, too)"
	@echo "make newest       the same on the newest that it allows (OVER=list of versions to keep, as pip freeze prints it)"
	@echo "make paper        list the results at the sources' own size; NAME=part/chapter computes and compares those of one"
	@echo "make pdf          print the built site into _build/pdf, the book and each part, and offer the files on the site (10 minutes)"
	@echo "make lock         write requirements.txt, the versions of all packages, from requirements.in, and Binder's part of it"
	@echo "make bench        print the timed comparisons"
	@echo "make clean        remove everything that was built, the environment included (a course stays)"
	@echo "Variables: PYTHON (which Python, 3.11 or newer), TORCH_INDEX (an index with CPU-only torch wheels),"
	@echo "           PHYSICS_OF_LEARNING_PRESET=paper (the sources' own sizes: hours; finished runs are kept), CHROMIUM (the browser)"

environment:
	@sh tools/build/environment.sh

book: environment
	@$(bin)/python -m tools.build.book

test: environment
	@$(bin)/python -m tools.build.check

test-all: environment
	@$(bin)/python -m tools.build.check --all

seeds: environment
	@$(bin)/python -m tools.build.seeds $(PAGES) $(if $(OFFSETS),--offsets $(OFFSETS)) $(if $(SAMPLES),--samples $(SAMPLES))

browser: environment
	@$(bin)/python -m tools.site.browser

lab: environment
	@$(bin)/python -m tools.release.reader
	@JUPYTER_CONFIG_PATH=$(CURDIR)/notebooks/.jupyter $(bin)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/book/index.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

assignments: environment
	@$(bin)/python -m tools.course.assignments $(NAME) $(if $(COURSE),--course "$(COURSE)")

scores: environment
	@$(bin)/python -m tools.course.scores $(NAME) $(if $(COURSE),--course "$(COURSE)")

rehearsal: environment
	@$(bin)/python -m tools.release.rehearsal

lowest: environment
	@$(bin)/python -m tools.release.lowest $(NAME)

newest: environment
	@$(bin)/python -m tools.release.lowest --newest $(if $(OVER),--over "$(OVER)") $(NAME)

paper: environment
	@$(bin)/python -m tools.release.paper $(NAME)

pdf: environment
	@$(bin)/python -m tools.release.pdf

lock: environment
	@$(bin)/uv pip compile --quiet requirements.in --output-file requirements.txt
	@{ echo "--extra-index-url https://download.pytorch.org/whl/cpu"; $(bin)/uv pip compile --quiet pyproject.toml --extra book --group launch --constraints requirements.txt; } >binder/requirements.txt

bench: environment
	@for script in benchmarks/[a-z]*.py; do $(bin)/python $$script || exit 1; done

clean:
	@if [ -x $(bin)/python ]; then $(bin)/python -m tools.build.clean; [ $$? -ne 75 ]; fi
	rm -rf .venv .venv-old _build .pytest_cache .hypothesis *.egg-info; $(if $(wildcard notebooks/.written.json),echo "notebooks/ stays: it may hold your work")
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
