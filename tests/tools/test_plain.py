"""Plain Markdown for JupyterLab and Colab: every kind of markup on a small case, and no MyST left on any page of the
book.
"""

import re

import nbformat
import pytest
import yaml
from pybtex.database import parse_string

from tools.build import project
from tools.release import plain, reader
from tools.site import markup, numbering

BIBLIOGRAPHY = """
@article{one2001, author = {Uno, A.}, title = {First}, journal = {J}, year = {2001}}
@article{two2002, author = {van Due, B. and M{\\"u}ller, C.}, title = {Second}, journal = {J}, year = {2002}}
@article{three2003, author = {Tre, D. and Due, E. and Uno, F.}, title = {Third}, journal = {J}, year = {2003}}
"""
PLACES = {
    "eq-here": ("book/a/here", "equation", "1.1", ""),
    "eq-there": ("book/b/there", "equation", "2.7", ""),
    "fig-here": ("book/a/here", "figure", "1.2", ""),
    "thm-here": ("book/a/here", "theorem", "1.1", "All is $x$"),
    "ex-here": ("book/a/here", "exercise", "1.3", "By hand"),
    "ch-there": ("book/b/there", "section", "0", "There, with {doc}`/book/glossary`"),
}
ROW = {
    "id": "toy/one",
    "source": "Uno",
    "locator": "eq. (1)",
    "printed": "$a+b$",
    "right": "$a-b$",
    "kind": "error",
    "cause": None,
    "place": 1,
    "citation": "one2001",
    "chapter": "book/b/there",
    "statement": "All is $x$.",
}
ROWS = [ROW, ROW | {"id": "toy/none", "printed": None}, ROW | {"id": "toy/two", "kind": "conversion", "place": 0}]


@pytest.fixture
def page():
    titles = {"book/a/here": "Here", "book/b/there": "There", "book/glossary": "Glossary"}
    places = {label: numbering.Place(*place) for label, place in PLACES.items()}
    book = numbering.Book(titles, places, frozenset({"book/a/here", "book/b/there"}))
    verdicts = ["reproduced", "error", "error"]
    rows = [row | {"verdict": verdict} for row, verdict in zip(ROWS, verdicts)]
    return plain.Page(
        "book/a/here", plain.Sources(book, rows, parse_string(BIBLIOGRAPHY, "bibtex").entries, project.ROOT)
    )


CASES = {
    "labels and index entries go": ("(x)=\n# Title\n\n```{index} a, b\n```\n\nText.", "# Title\n\nText."),
    "comments go": ("% note\nText of 3 % here.", "Text of 3 % here."),
    "numbered equation": ("$$\nx=1\n$$ (eq-here)", "$$\nx=1 \\tag{1.1}\n$$"),
    "equation on one line": ("See\n\n$$x=1$$ (eq-here)\nthere.", "See\n\n$$\nx=1 \\tag{1.1}\n$$\nthere."),
    "equation in a list": ("- a\n\n  $$\n  x\n  $$\n", "- a\n\n  $$\n  x\n  $$"),
    "math directive": ("```{math}\n:label: eq-here\nx\n```", "$$\nx \\tag{1.1}\n$$"),
    "bare environment": (
        "\\begin{align*}\na&=b\\nonumber\\\\\nc&=d\n\\end{align*}",
        "$$\n\\begin{aligned}\na&=b\\\\\nc&=d\n\\end{aligned}\n$$",
    ),
    "bare gather": ("\\begin{gather}\na\n\\end{gather}", "$$\n\\begin{gathered}\na\n\\end{gathered}\n$$"),
    "code": ("```python\n$$ {eq}`eq-here`\n:::\n```", "```python\n$$ {eq}`eq-here`\n:::\n```"),
    "inline code and TeX": ("`{eq}` and ``a`b`` and $a\nb$ and \\$5", "`{eq}` and ``a`b`` and $a b$ and \\$5"),
    "admonition": (
        ":::{admonition} Objectives\n:class: objectives\nYou can\n\n- see {eq}`eq-here`.\n:::",
        "> **Objectives**\n>\n> You can\n>\n> - see (1.1).",
    ),
    "equation in a box": (":::{note}\n$$\na\\\\\nb\n$$ (eq-here)\n:::", "> **Note**\n>\n> $$ a\\\\ b \\tag{1.1} $$"),
    "folded box": (
        ":::{admonition} More\n:class: dropdown\nText.\n:::",
        "<details>\n<summary>More</summary>\n\nText.\n\n</details>",
    ),
    "theorem": (":::{prf:theorem} All is $x$\n:label: thm-here\nSo.\n:::", "> **Theorem 1.1 (All is $x$)**\n>\n> So."),
    "exercise": (":::{exercise} By hand\n:label: ex-here\nFind $x$.\n:::", "**Exercise 1.3 (By hand)**\n\nFind $x$."),
    "solution": (
        "::::{solution} ex-here\n:class: dropdown\n:::{note}\nA\n:::\n```python\nx\n```\n::::",
        "<details>\n<summary>Solution to Exercise 1.3 (By hand)</summary>\n\n"
        "> **Note**\n>\n> A\n\n```python\nx\n```\n\n</details>",
    ),
    "correction": (
        ":::{correction} toy/one\nBecause.\n:::",
        "> **Error 1: Uno, eq. (1)**\n>\n> **Printed:** $a+b$\n>\n> **Right:** $a-b$\n>\n> Because.",
    ),
    "damaged text": (
        ":::{correction} toy/two\n:::",
        "> **Text 1: Uno, eq. (1)**\n>\n> **In the text we worked from:** $a+b$\n>\n> **Right:** $a-b$",
    ),
    "generated": ("```{nb-exec-table}\n```", "*The book's site shows the nb exec table here.*"),
    "text after a box": ("Before.\n:::{note}\nA\n:::\nAfter.", "Before.\n\n> **Note**\n>\n> A\n\nAfter."),
    "empty lines in code": (
        ":::{exercise}\n```python\na\n\n\nb\n```\n:::\n\n\n\nEnd.",
        "**Exercise**\n\n```python\na\n\n\nb\n```\n\nEnd.",
    ),
    "unknown with text": (":::{aside} Title\nText.\n:::", "> **Title**\n>\n> Text."),
    "page": (
        "{doc}`../b/there`, {doc}`/book/b/there`, {doc}`that <../b/there>`",
        "[There](../b/there.ipynb), [There](../b/there.ipynb), [that](../b/there.ipynb)",
    ),
    "page that is no notebook": ("{doc}`/book/glossary`", "Glossary"),
    "section": ("{ref}`ch-there`", "[There, with Glossary](../b/there.ipynb)"),
    "own exercise": ("{ref}`ex-here` and {ref}`the\nlast <ex-here>`", "Exercise 1.3 and the last"),
    "figure, result, equation": (
        "{numref}`fig-here`, {prf:ref}`thm-here`, {eq}`eq-there`",
        "Fig. 1.2, Theorem 1.1, [(2.7)](../b/there.ipynb)",
    ),
    "figure with text": ("{numref}`figure %s <fig-here>`", "figure 1.2"),
    "term": ("{term}`a\nterm`, {term}`terms <term>`", "a term, terms"),
    "citation": ("{cite}`one2001,two2002`", "(Uno, 2001; van Due and Müller, 2002)"),
    "citation in the text": ("{cite:t}`three2003` say", "Tre et al. (2003) say"),
    "correction by its name": ("{correction-ref}`toy/one`", "[Error 1](../b/there.ipynb)"),
    "function": ("{py:func}`a.b <lib.a.b>` and {py:class}`lib.a.C`", "`a.b` and `lib.a.C`"),
    "math role": ("{math}`x^2`", "$x^2$"),
    "unknown role": ("{strange}`words <target>`", "words"),
}


@pytest.mark.parametrize(("source", "wanted"), CASES.values(), ids=CASES)
def test_markup(page, source, wanted):
    assert page.text(source) == wanted


def test_what_the_book_writes_itself_is_plain_too(page):
    made = page.text("```{ledger-summary}\n```")
    assert made.startswith("Of the 3 claims of the sources that the book takes up:\n\n- **1** reproduced: derived here")
    assert "- **2** corrected (an error): " in made and made.endswith("all hold within the stated tolerance.")
    page.page = "book/b/there"
    made = page.text("```{source-and-page}\nHedges.\n```")
    assert made.startswith(
        "<details>\n<summary>3 claims of the source: 1 reproduced, 2 corrected (an error)</summary>\n\n"
    )
    assert (
        "\n\nHedges.\n\n**Reproduced**\n\n" in made
        and "\n- *eq. (1).* All is $x$.\n" in made
        and made.endswith("\n\n</details>")
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{eq}`eq-lost`", "book/a/here refers to 'eq-lost', which no page defines"),
        ("$$\nx\n$$ (eq-lost)", "refers to 'eq-lost'"),
        ("{doc}`lost`", "refers to the page 'lost', which is not in _toc.yml"),
        ("{cite}`lost1999`", "cites 'lost1999', which is not in book/references.bib"),
        (":::{correction} toy/none\n:::", "correction 'toy/none' is not a claim"),
    ],
)
def test_dangling_references_are_named(page, source, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        page.text(source)


def test_a_notebook_is_folded_captioned_and_given_its_references(page):
    v4 = nbformat.v4
    figure = {"name": "fig-here", "caption": "One line,\nsee {cite}`one2001`.\n"}
    drawing = v4.new_output("display_data", {"image/svg+xml": '<svg a="#1">&amp;\n</svg>', "text/plain": "<Figure>"})
    image = {"alt": 'A "line" that falls.'}
    code = [
        v4.new_code_cell(
            "x = 1  # {eq}`eq-here`",
            metadata={
                "tags": ["hide-input"],
                "mystnb": {"figure": figure, "image": image, "code_prompt_show": "Code of it"},
            },
            execution_count=1,
            outputs=[drawing],
        ),
        v4.new_code_cell("y", execution_count=2, outputs=[v4.new_output("stream", text="1\n")]),
    ]
    source = v4.new_notebook(
        cells=[v4.new_markdown_cell("(x)=\n# T"), *code, v4.new_markdown_cell("(y)=")], metadata={"source_map": [1]}
    )
    untouched = nbformat.writes(source)
    made = plain.notebook(source, "book/a/here", page.known)
    nbformat.validate(made)
    assert nbformat.writes(source) == untouched, "the build's own notebook must stay as it is"
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        ("markdown", "[There →](../b/there.ipynb)"),
        ("markdown", "# T"),
        ("markdown", "*Code of it*"),
        ("code", "x = 1  # {eq}`eq-here`"),
        ("markdown", "**Fig. 1.2.** One line, see (Uno, 2001)."),
        ("code", "y"),
        ("markdown", "## References\n\n- A. Uno. First. J, 2001."),
        ("markdown", "[There →](../b/there.ipynb)"),
    ]
    assert made.cells[3].outputs[0].data == {
        "text/html": '<img alt="A &quot;line&quot; that falls." style="background-color: white; max-width: 100%" '
        'src="data:image/svg+xml,%3Csvg a=%22%231%22%3E%26amp;%0A%3C/svg%3E">',
        "text/plain": "<Figure>",
    }
    assert made.cells[3].metadata["jupyter"] == {"source_hidden": True} and made.cells[3].metadata["cellView"] == "form"
    assert "jupyter" not in made.cells[5].metadata and made.cells[5].outputs == code[1].outputs
    assert nbformat.writes(plain.notebook(source, "book/a/here", page.known)) == nbformat.writes(made), (
        "the same input, the same file"
    )


NOTEBOOKS = {
    path.relative_to(project.ROOT).with_suffix("").as_posix(): path for path in project.notebooks(project.ROOT)
}


@pytest.fixture(scope="module")
def notebooks():
    return {name: project.read_notebook(project.ROOT, path) for name, path in NOTEBOOKS.items()}


@pytest.fixture(scope="module")
def known(notebooks):
    return plain.sources(project.ROOT, reader.declared_rows(project.ROOT, notebooks))


@pytest.mark.parametrize("name", [*NOTEBOOKS, plain.GLOSSARY])
def test_no_myst_is_left_in_any_notebook(notebooks, known, name):
    notebook = notebooks[name] if name in notebooks else plain.glossary(project.ROOT)
    made = plain.notebook(notebook, name, known)
    assert [c.source for c in made.cells if c.cell_type == "code"] == [
        c.source for c in notebook.cells if c.cell_type == "code"
    ]
    for cell in made.cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"\$\$.*?\$\$", "", cell.source, flags=re.DOTALL)
            left = re.search(r":::|`{3,}\{|\{[\w:+-]+\}`|^\([^()\s]+\)=|^ *\\begin\{", prose, re.MULTILINE)
            assert left is None, f"{left.group()!r} in {cell.source}"
            assert cell.source.count("$$") % 2 == 0 and cell.source.count("<details>") == cell.source.count(
                "</details>"
            )
            assert not any(line.strip() == "> $$" for line in cell.source.split("\n")), (
                "JupyterLab would take the quotation marks for TeX"
            )


def test_pieces_of_a_page():
    text = "---\na: 1\n---\nText\n\n(t)=\n\\begin{align}\nx\n\\end{align}\n$$\nnever closed"
    assert [(block.kind, block.name, block.text) for block in markup.blocks(text)] == [
        ("comment", "", ""),
        ("text", "", "Text\n"),
        ("target", "t", ""),
        ("environment", "align", "\\begin{align}\nx\n\\end{align}"),
        ("text", "", "$$\nnever closed"),
    ]
    (unclosed,) = markup.blocks(":::{note}\ntext")
    assert (unclosed.kind, unclosed.text) == ("directive", "text")
    config = yaml.safe_load(project.read(project.ROOT / "_config.yml"))
    assert set(config["parse"]["myst_enable_extensions"]) == markup.EXTENSIONS


def test_numbers_run_through_a_numbered_chapter_and_through_all_other_pages(tmp_path):
    (tmp_path / "book").mkdir()
    toc = "format: jb-book\nroot: book/a\nparts:\n- numbered: true\n  chapters:\n  - file: book/b\n  - file: book/c\n"
    toc += "- chapters:\n  - file: book/d\n"
    (tmp_path / "_toc.yml").write_text(toc)
    body = "\n\n$$\nx\n$$ (eq-{0})\n\n$$\nnot counted\n$$\n\n"
    body += ":::{{prf:lemma}} L\n:label: lem-{0}\n\\begin{{align}}\nx\n\\end{{align}}\n\n$$x$$ (eq-{0}2)\n:::\n"
    for page in "abcd":
        (tmp_path / "book" / f"{page}.md").write_text(f"(sec-{page})=\n# Page {page}" + body.format(page))
    book = numbering.read(tmp_path)
    assert book.titles["book/c"] == "Page c" and book.places["sec-c"].name == "Page c"
    places = {label: place for label, place in book.places.items() if place.page in ("book/c", "book/d")}
    names = {label: place.full_name for label, place in places.items() if place.kind != "section"}
    assert names == {
        "eq-c": "(2.1)",
        "lem-c": "Lemma 2.1 (L)",
        "eq-c2": "(2.3)",
        "eq-d": "(4)",
        "lem-d": "Lemma 2 (L)",
        "eq-d2": "(6)",
    }
    assert book.notebooks == frozenset()
