"""Every page in a browser once, as a telephone shows it; one page of each kind on a desk and in dark colors too.

What each check means is in tools/site/browser_checks.py, and tests/tools/test_browser_checks.py breaks each one.
"""

import pytest

from tools.build import project
from tools.site import browser_checks, site_checks

KINDS = {
    "404",
    "search",
    *(
        f"book/{name}"
        for name in ("corrections", "glossary", "instructors", "ledger/fields", "library/common", "notation")
    ),
}
KINDS |= {"book/foundations/online-learning", "book/scaling/linear-student", "book/summaries/fields"}
PAGES = {*project.toc_pages(project.ROOT), *site_checks.GENERATED} - {"index"}  # which only leads to another


def size(page):
    path = site_checks.html_path(site_checks.site_folder(project.ROOT), page)
    return path.stat().st_size if path.is_file() else 0


# The longest pages first, so that no worker ends alone.
@pytest.mark.parametrize("page", sorted(PAGES, key=lambda page: (-size(page), page)))
def test_page(opened, page):
    with opened(f"{page}.html") as (tab, faults):
        found = browser_checks.problems(tab)
        found += browser_checks.thorough(tab) if page in KINDS else []
        assert not found + faults, "\n".join(found + faults)


def test_there_is_a_page_of_each_kind_and_the_front_page_leads_to_the_first(opened):
    assert KINDS <= PAGES
    with opened("index.html") as (tab, faults):
        tab.wait_for_url("**/book/index.html")
        assert faults == []
