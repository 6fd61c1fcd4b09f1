"""A browser for each file of tests (other tests may need what it takes of a process), and the built site, served here.

`python -m tools.site.browser` (or `make browser`) runs these tests.
"""

import pytest
from playwright.sync_api import sync_playwright

from tools.build import project
from tools.site import address, browser, site_checks


@pytest.fixture(scope="module")
def chromium():
    if browser.find() is None:
        pytest.skip(browser.missing())
    with sync_playwright() as playwright, browser.start(playwright) as program:
        yield program


@pytest.fixture(scope="session")
def server():
    folder = site_checks.site_folder(project.ROOT)
    if not (folder / "index.html").is_file():
        pytest.fail(f"{folder} holds no built site: run `make book` first")
    with browser.serve(folder, address.prefix(project.remote(project.ROOT))) as place:
        yield place


@pytest.fixture
def opened(chromium, server):
    """Opens a page: see `tools.site.browser.opened`."""
    return lambda path, **options: browser.opened(chromium, server, path, **options)
