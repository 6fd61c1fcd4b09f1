"""The address of a published site follows from the git remote alone, so that a fork's pages name the fork."""

import pytest

from tools.build import project
from tools.site import address


@pytest.mark.parametrize(
    ("repository", "site", "prefix"),
    [
        ("https://github.com/Someone/fork.git", "https://someone.github.io/fork/", "/fork/"),
        ("git@github.com:someone/someone.github.io.git", "https://someone.github.io/", "/"),
        ("https://gitlab.com/group/sub/book", "https://group.gitlab.io/sub/book/", "/sub/book/"),
    ],
)
def test_site_of_a_remote(repository, site, prefix):
    remote = project.parse_remote(repository, "main")
    assert address.site(remote) == site
    assert address.prefix(remote) == prefix


def test_without_a_remote_there_is_no_site_and_links_begin_at_the_root():
    assert address.site(None) is None
    assert address.prefix(None) == "/"
