"""The chapters that follow HOW-A-CHAPTER-IS-MADE.md keep its measures: what is shown, what is folded, what is drawn."""

import re
import statistics

import pytest

from tools.build import project
from tools.sphinx_ext import symbols

REWRITTEN = [
    "foundations/langevin",
    "foundations/gaussian-averages",
    "foundations/online-learning",
    "foundations/approaching-the-teacher",
    "criticality/change-of-variables",
    "criticality/steps-in-many-dimensions",
    "fluctuations/stochastic-descent",
    "fluctuations/exact-identity",
    "fluctuations/epochs",
    "fluctuations/finer-relations",
    "fluctuations/beyond-the-linear-layer",
    "fluctuations/momentum-and-currents",
    "fluctuations/real-data",
    "fields/training-as-sampling",
    "fields/sampling-in-practice",
]


@pytest.fixture(params=REWRITTEN)
def cells(request):
    return project.read_notebook(project.ROOT, project.ROOT / f"book/{request.param}.md").cells


def folded(cell):
    return "hide-input" in cell.metadata.get("tags", [])


def code(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


def words(text):
    """Words of prose, a formula counted as one."""
    return len(re.sub(r"\$\$.*?\$\$|\$[^$]*\$|```.*?```|:::\{[^\n]*|\{[a-z:]+\}", " x ", text, flags=re.DOTALL).split())


def test_visible_code_is_short_and_the_rest_says_what_it_holds(cells):
    lengths = [sum(bool(line.strip()) for line in c.source.split("\n")) for c in code(cells) if not folded(c)]
    assert sum(lengths) <= 150 and statistics.median(lengths) <= 8 and max(lengths) <= 20
    assert all(cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in code(cells) if folded(cell))
    assert not [cell.source for cell in code(cells) if "ledger.check(" in cell.source and not folded(cell)]


def test_what_sympy_computes_is_shown(cells):
    shows = sum(len(re.findall(r"\bshow\(", cell.source)) for cell in code(cells))
    assert shows >= 8
    derivation = "\n".join(c.source for c in cells if c.cell_type != "code").split("## Exercises")[0]
    typed = derivation.count("$$") / 2 + derivation.count("\\begin{align*}")
    assert shows >= (shows + typed) / 3


def test_something_is_seen_at_once_and_one_must_predict(cells):
    first = next(n for n, cell in enumerate(cells) if "explore.slider(" in cell.source)
    before = [cell for cell in cells[:first] if cell.cell_type != "code"]
    assert sum(words(cell.source) for cell in before) <= 150
    text = "\n".join(cell.source for cell in cells if cell.cell_type != "code")
    main, _, rest = text.partition("## Exercises")
    assert "**" in text.split("\n## ")[0], "the question stands in bold before the first section"
    assert len(re.findall(r":class: (?:\w+, )?dropdown", main)) >= 2, "two predictions with a folded answer"
    assert rest.count(":::{exercise}") >= 3 and rest.count("::::{solution}") == rest.count(":::{exercise}")


def test_there_are_figures_enough_and_few_words(cells):
    text = "\n".join(cell.source for cell in cells if cell.cell_type != "code").split("## Exercises")[0]
    figures = sum("figure" in c.metadata.get("mystnb", {}) or "explore.slider(" in c.source for c in code(cells))
    assert words(text) <= 2500
    assert figures >= 3 * words(text) / 1000 - 0.5, (figures, words(text))


@pytest.mark.parametrize("page", REWRITTEN)
def test_a_symbol_has_one_meaning_in_a_chapter(page):
    lines = symbols.of_page(project.ROOT, f"book/{page}")
    letters = [letter for line in lines[2:] for letter in re.findall(r"\$[^$]+\$", line.split("|")[1])]
    assert len(letters) > 5 and sorted(letters) == sorted(set(letters))
