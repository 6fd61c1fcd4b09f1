"""The bibliography shows the links of its works."""

from bs4 import BeautifulSoup


def test_every_work_shows_its_link(site):
    page = BeautifulSoup((site / "book" / "bibliography.html").read_text(encoding="utf-8"), "html.parser")
    works = page.select(".citation")
    bare = [work.get_text() for work in works if not work.select("a.external[href^='https://']")]
    assert len(works) > 80 and [work for work in bare if "Not verified: " not in work] == []
