"""What a page loads, before any of it is kept: the files that it names.  Chromium's part is in tests/browser."""

import pytest

from tools.build import project
from tools.site import site_checks

PAGES = project.toc_pages(project.ROOT)
WORDS, MATHEMATICS = 900_000, 2_500_000  # bytes, of a page without and with equations


def test_a_page_is_light(site):
    sizes = {page: site_checks.weight(site, page) for page in [*PAGES, "search"]}
    equations = {page for page in PAGES if "mathjax/startup.js" in site_checks.html_path(site, page).read_text("utf-8")}
    assert {page: size for page, size in sizes.items() if size > (MATHEMATICS if page in equations else WORDS)} == {}
    assert {"book/index", "book/paths", "book/results", "book/library/scaling", "search"} & equations == set()


def test_the_search_is_loaded_by_its_own_page_alone(site):
    named = {page: site_checks.html_path(site, page).read_text("utf-8") for page in [*PAGES, "search"]}
    assert [page for page, text in named.items() if "searchindex.js" in text] == ["search"]
    assert (site / "searchindex.js").stat().st_size < 500_000


@pytest.mark.parametrize("name", ["fontawesome.js", "fa-solid-900.woff2"])
def test_no_file_names_the_whole_set_of_icons(site, name):
    texts = [site_checks.html_path(site, "book/index"), *(site / "_static" / "styles").glob("*.css")]
    assert [path.name for path in texts if name in path.read_text("utf-8")] == []


def test_every_icon_of_a_page_has_its_rule(site):
    sheet = (site / "_static" / "styles" / "pydata-sphinx-theme.css").read_text("utf-8")
    icons = {
        name
        for page in PAGES
        for node in site_checks.read(site_checks.html_path(site, page)).select("[class*='fa-']")
        for name in node["class"]
        if name.startswith("fa-")
    }
    assert len(icons) > 5 and {name for name in icons if f".{name}" not in sheet} == set()
