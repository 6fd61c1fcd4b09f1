"""The search's index: what is found of a page, where, and what a result shows of it."""

import json

import pytest
from small_site import build, write

from tools.build import project
from tools.sphinx_ext import search

PAGES = {
    "index": "# Start\n\nThese are the first words of the book, see {doc}`a`.\n\n```{toctree}\na\n```\n",
    "a": "---\nabout: A page on heat.\n---\n# Warm $\\eta$\n\n## Second heading\n\n```{index} latent heat\n```\n\n"
    "Here the rate $\\eta$ meets $\\frac12 x$ and some `code_name` in one sentence.\n\n```python\nsecret = 1\n```\n"
    "\n:::{prf:theorem} A boxed result\n:label: thm-boxed\n\nThe statement of a box, in quite a few words.\n:::\n",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    (root / "_toc.yml").write_text("root: index\nchapters:\n- file: a\n")
    write(root, PAGES)
    assert build(root, "sphinx_proof", "tools.sphinx_ext.search", first="index") == (0, "")
    return root / "_build" / "html"


@pytest.fixture(scope="module")
def index(made):
    script = (made / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(script.partition("Search.open(")[2].rpartition(");")[0])


def test_places_of_a_page_are_found_with_their_anchors(index):
    assert [page[:3] for page in index["pages"]] == [["index", "Start", ""], ["a", "Warm η", "A page on heat."]]
    places = [[kind, text, anchor] for page, kind, text, anchor in index["places"] if page == 1]
    assert ["section", "Second heading", "second-heading"] in places
    assert ["term", "latent heat", "index-0"] in places
    assert ["theorem", "A boxed result", "thm-boxed"] in places


def test_words_count_and_code_does_not(index):
    assert index["words"]["heat"] == "012"  # on the second page, in a term and in what the page is about
    assert index["words"]["word"] == "001011"
    assert not {"secret", "frac", "the"} & set(index["words"])


def test_excerpts_hold_no_code_and_no_tex(made):
    texts = json.loads((made / "search" / "a.json").read_text(encoding="utf-8"))
    assert ["Here the rate η meets … and some code_name in one sentence.", "second-heading"] in texts
    assert [text for text, anchor in texts if anchor == "thm-boxed"] == [
        "The statement of a box, in quite a few words."
    ]
    start = json.loads((made / "search" / "index.json").read_text(encoding="utf-8"))
    assert start == [["These are the first words of the book, see Warm η.", ""]]


@pytest.mark.parametrize(
    ("tex", "shown"), [("x", "x"), (r"\beta", "β"), (r"\Sigma", "Σ"), ("12", "12"), (r"\dot x", "…"), (r"\rm", "…")]
)
def test_a_formula_of_one_letter_is_a_character(tex, shown):
    assert search.symbol(tex) == shown


def test_names_of_code_are_found_by_their_parts():
    assert sorted(search.stems("noise_moment of 3 Waves")) == ["moment", "nois", "noise_mo", "wave"]


def test_a_count_of_words_has_three_characters():
    assert search.packed([(0, 1), (37, 12)]) == "001119"


def test_no_page_but_the_search_loads_the_index():
    template = project.read(project.ROOT / "book" / "_templates" / "layout.html")
    assert "{% block extrahead %}{% endblock %}" in template
