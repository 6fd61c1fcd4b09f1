"""Every page in a browser.

What each check means is in tools/site/browser_checks.py, and tests/tools/test_browser_checks.py breaks each one.
"""

import pytest

from tools.build import project
from tools.site import browser_checks, library, site_checks


def size(page):
    path = site_checks.html_path(site_checks.site_folder(project.ROOT), page)
    return path.stat().st_size if path.is_file() else 0


# The modules' pages are all of one make: the longest, and that of the longest name, stand for them.
# The front page only leads to another.
MODULES = [module.page for module in library.modules(project.ROOT).values()]
PAGES = {*project.toc_pages(project.ROOT), *site_checks.GENERATED, max(MODULES, key=size), max(MODULES, key=len)} - {
    "index"
}


# The longest pages first, so that no worker ends alone.
@pytest.mark.parametrize("page", sorted(PAGES, key=lambda page: (-size(page), page)))
def test_page(opened, page):
    with opened(f"{page}.html") as (tab, faults):
        found = browser_checks.problems(tab) + faults
        assert not found, "\n".join(found)


def test_front_page_leads_to_the_first_page(opened):
    with opened("index.html") as (tab, faults):
        tab.wait_for_url("**/book/index.html")
        assert faults == []
