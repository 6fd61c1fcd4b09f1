"""The built site that these tests look at: `python -m tools.build.book` (or `make book`) makes it."""

import json

import pytest

from tools.build import project
from tools.site import site_checks


@pytest.fixture(scope="session")
def site():
    folder = site_checks.site_folder(project.ROOT)
    if not (folder / "index.html").is_file():
        pytest.fail(f"{folder} holds no built site: run `make book` first")
    return folder


@pytest.fixture(scope="session")
def ledger_json(site):
    return json.loads((site.parent / "ledger.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def links(site):
    return site_checks.Links(site)
