"""The chapters with a table of symbols keep the measures of HOW-A-CHAPTER-IS-MADE.md, whose rule a failure quotes."""

import ast
import re
import statistics

import pytest

from tools.build import project
from tools.site.chapters import words

SILENT = {"invert_yaxis", "label_line", "minorticks_off"}  # what returns None
RULES = dict(re.findall(r"^(\d+)\. (.+)$", project.read(project.ROOT / "HOW-A-CHAPTER-IS-MADE.md"), re.MULTILINE))
NOTATION = project.read(project.ROOT / "book" / "notation.md").split("\n## ")
PAGES = [path for path in project.notebooks(project.ROOT) if "```{symbols}" in project.read(path)]


def rule(number):
    return f"HOW-A-CHAPTER-IS-MADE.md, {number}. {RULES[str(number)]}"


@pytest.fixture(params=PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def page(request):
    return request.param


@pytest.fixture
def cells(page):
    return project.read_notebook(project.ROOT, page).cells


def folded(cell):
    return "hide-input" in cell.metadata.get("tags", [])


def code(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


def prose(cells):
    return "\n".join(cell.source for cell in cells if cell.cell_type != "code")


def test_the_rules_are_numbered_through():
    assert list(RULES) == [str(number) for number in range(1, 13)] and len(PAGES) >= 15


def test_visible_code_is_short_and_the_rest_says_what_it_holds(cells):
    lengths = [sum(bool(line.strip()) for line in c.source.split("\n")) for c in code(cells) if not folded(c)]
    assert statistics.median(lengths) <= 8 and max(lengths) <= 20, rule(7)
    assert all(cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in code(cells) if folded(cell)), rule(7)
    assert not [cell.source for cell in code(cells) if "ledger.check(" in cell.source and not folded(cell)], rule(7)
    assert sum(lengths) <= 120, rule(8)


def test_what_sympy_computes_is_shown(cells):
    shows = sum(len(re.findall(r"\bshow\(", cell.source)) for cell in code(cells))
    derivation = prose(cells).split("## Exercises")[0]
    typed = derivation.count("$$") / 2 + derivation.count("\\begin{align*}")
    assert shows >= max(8, (shows + typed) / 3), rule(5)


def test_something_is_seen_at_once_and_one_must_predict(cells):
    first = next(n for n, cell in enumerate(cells) if "explore.slider(" in cell.source)
    assert sum(words(cell.source) for cell in cells[:first] if cell.cell_type != "code") <= 150, rule(2)
    text = prose(cells)
    main, _, rest = text.partition("## Exercises")
    assert "**" in text.split("\n## ")[0], rule(2)
    assert len(re.findall(r":class: (?:\w+, )?dropdown", main)) >= 2, rule(10)
    assert 3 <= rest.count(":::{exercise}") <= 6 and rest.count("::::{solution}") == rest.count(":::{exercise}"), rule(
        10
    )


def test_there_are_figures_enough_and_few_words(cells):
    count = words(prose(cells).split("## Exercises")[0])
    figures = sum("figure" in c.metadata.get("mystnb", {}) or "explore.slider(" in c.source for c in code(cells))
    assert count <= 2500, rule(8)
    assert figures >= 3 * count / 1000 - 0.5, f"{figures} figures, {count} words: {rule(1)}"
    named = [c.source.rstrip() for c in code(cells) if "figure" in c.metadata.get("mystnb", {})]
    tree = {c.source.rstrip(): ast.parse(c.source) for c in code(cells)}  # warnings of the parser are errors here
    last = {source: tree[source].body[-1] for source in named if not source.endswith(";")}
    loud = [s for s, node in last.items() if isinstance(node, ast.Expr) and node.value.func.attr not in SILENT]
    loud += [source for source in named if "ledger.check(" in source or "tight_layout(" in source]
    tiny = [source for source in tree if re.search(r"""fontsize=["'](?:x+-)?small""", source)]
    assert not tiny, f"smaller than what a telephone can show: {tiny}"
    assert not loud, f"a cell that names a figure shows nothing else: end it with ;, book claims in the next: {loud}"


def test_a_symbol_has_one_meaning_in_a_chapter(page):
    label = re.search(r"^\((ch-[\w-]+)\)=", project.read(page), re.MULTILINE)[1]
    named = [part for part in NOTATION if re.search(rf"[`<]{label}[`>]", part.split("\n|")[0])]
    rows = [line.split("|")[1] for part in named for line in part.splitlines() if line.startswith("| ")]
    letters = [letter for row in rows for letter in re.findall(r"\$[^$]+\$", row)]
    assert len(letters) > 5 and sorted(letters) == sorted(set(letters)), rule(6)
