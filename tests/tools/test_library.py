"""The library's pages: all of it is documented in valid markup and readable words; figures name what they come from."""

import re

import nbformat
import pytest
from small_site import build, read, write
from sphinx.util.typing import stringify_annotation

from lib.common.shapes import Array, ArrayLike, Rng
from tools.build import project
from tools.site import figure_sources
from tools.sphinx_ext import library

EXTENSIONS = ("sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "tools.sphinx_ext.library")
PACKAGES = sorted((project.ROOT / "book" / "library").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("library")
    toctree = "# Start\n\n```{toctree}\n" + "\n".join(path.stem for path in PACKAGES) + "\n```\n"
    write(root, {"index": toctree} | {path.stem: project.read(path) for path in PACKAGES})
    assert build(root, *EXTENSIONS, first="index") == (0, "")
    return root


def test_every_public_module_is_documented_and_no_name_of_it_is_in_the_index(site):
    sections = {
        (path.stem.replace("-", "."), found.get_text("", strip=True).strip("#"))
        for path in PACKAGES
        for found in read(site, path.stem).select("article h2")
    }
    files = [path.relative_to(project.ROOT).with_suffix("").parts[1:] for path in (project.ROOT / "lib").rglob("*.py")]
    public = {(".".join(parts[:-1]), parts[-1]) for parts in files if not any(part.startswith("_") for part in parts)}
    assert sections == public and len(public) > 50
    assert all(read(site, path.stem).select("article dl.py") for path in PACKAGES)


def test_signatures_are_in_the_words_of_the_source(site):
    text = " ".join(node.get_text() for path in PACKAGES for node in read(site, path.stem).select("article dt.sig"))
    assert (
        "Annotated" not in text
        and "_SupportsArray" not in text
        and "common.shapes.Rng |" not in text
        and ": lib.common.shapes" not in text
    )


def test_an_annotation_is_written_as_in_the_source():
    kinds = [ArrayLike, ArrayLike | None, str | ArrayLike, Rng, float | Array["n K"]]
    shown = [library.words(stringify_annotation(kind)) for kind in kinds]
    assert shown == ["ArrayLike", "ArrayLike | None", "str | ArrayLike", "Rng", "float | Array['n K']"]


def test_formulas_in_docstrings_are_no_markup_and_examples_stay():
    lines = ["|x| and a* of `|y|`, ``b*``, :func:`f_`, w_ k_i.", "", ">>> a * b  # |x|", "[1 *", "", "2*3"]
    library.plain_text(*[None] * 5, lines)
    assert lines == [
        r"\|x\| and a\* of `|y|`, ``b*``, :func:`.f_`, w\_ k_i.",
        "",
        ">>> a * b  # |x|",
        "[1 *",
        "",
        r"2\*3",
    ]


IMPORTS = "import numpy as np\nfrom lib.scaling import linear_student, spectra as s\nfrom lib.services import plot"


def names(*cells):
    """The names of lib behind a figure that the last cell draws."""
    made = [nbformat.v4.new_code_cell(text) for text in (IMPORTS, *cells)]
    made[-1].metadata["mystnb"] = {"figure": {"name": "fig-a"}}
    return figure_sources.figures(nbformat.v4.new_notebook(cells=made))["fig-a"]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["x = s.power_law(2, 1)\nplot.show(linear_student.solve(x))"], ["spectra.power_law", "linear_student.solve"]),
        (["from lib.scaling.spectra import power_law as law\nlaw(2)"], ["spectra.power_law"]),
        (["import lib\nlib.scaling.spectra.power_law(2)"], ["spectra.power_law"]),
        (
            ["def f(n):\n    return g(n)", "def g(n):\n    return s.power_law(n) if n else f(n)", "f(2)"],
            ["spectra.power_law"],
        ),
        (
            ["x = s.power_law(2)", "y = np.cumsum(x)", "x = linear_student.solve(1)", "z = y[0]\nprint(z)"],
            ["spectra.power_law"],
        ),
        (["x = s.power_law(2)", "x = 3", "print(x)"], []),
        (["x = s.power_law(2)", "x = 3\nprint(x)"], []),
        (["x = {}\nfor k in (1, 2):\n    x[k] = s.power_law(k)", "print(x)"], ["spectra.power_law"]),
        (["x = []\nx.append(s.power_law(2))", "print(x)"], ["spectra.power_law"]),
        (["for k in s.power_law(2):\n    print(k)", "for k in (1, 2):\n    print(k)"], []),
        (["def f(x):\n    return x\ny = s.power_law(2)", "x = 1", "print(f(x))"], []),
    ],
)
def test_a_figure_names_what_its_cell_calls_or_where_its_values_come_from(cells, wanted):
    found = [name.removeprefix("lib.scaling.") for name in names(*cells)]
    assert [name for name in found if re.search(r"\.[a-z_]+$", name)] == wanted
