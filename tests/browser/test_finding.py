"""How a reader finds things: the search, previews of what a link leads to, and how much a page fetches."""

import re
import tomllib

import pytest

from tools.build import project
from tools.site import browser, browser_checks

WANTED = {  # a query, and the pages of which one comes first or second
    "plateau length": {"book/scaling/plateaus"},
    "SGD noise covariance": {"book/fluctuations/stochastic-descent", "book/fluctuations/exact-identity"},
    "double descent": {"book/fields/overfitting"},
    "learning rate threshold": {"book/fluctuations/exact-identity", "book/scaling/linear-student"},
    "kernel ridge": {"book/fields/averaging-over-data"},
    "feature learning": {"book/fields/kernel-adaptation", "book/fields/first-order-transition"},
    "SGD temperature": {"book/foundations/langevin", "book/synthesis/one-loss-many-clouds"},
    "noise_moment": {"book/library/fluctuations"},
}
NOTHING = ("constructor", "__proto__", "hasOwnProperty", "toString", "xylophone", "the", "")
EQUATION = 'article a[href^="#equation-"]:visible'


@pytest.fixture(scope="module")
def found(chromium, server):
    """Asks the search for a query: the pages that it finds, and milliseconds."""
    with browser.opened(chromium, server, "search.html") as (tab, faults):
        script = "query => { const start = performance.now(); return [Search.find(query), performance.now() - start]; }"
        tab.wait_for_function("Search.find('plateau').length > 0")
        yield lambda query: tab.evaluate(script, query)
        assert faults == []


@pytest.mark.parametrize("query", WANTED)
def test_a_query_finds_its_chapter(found, query):
    assert WANTED[query] & {page["name"] for page in found(query)[0][:2]}


@pytest.mark.parametrize("query", NOTHING)
def test_what_every_object_has_is_not_found(found, query):
    pages, milliseconds = found(query)
    assert pages == [] and milliseconds < 300


def test_words_of_readers_find_chapters(found):
    said = tomllib.loads(project.read(project.ROOT / "tools" / "sphinx_ext" / "synonyms.toml"))
    assert len(said) >= 20
    missed = [one for one in said if not any(page["name"].count("/") == 2 for page in found(one)[0][:2])]
    assert missed == []
    lost = [other for others in said.values() for other in others if not found(other)[0]]
    assert lost == [], "words that the book does not use"


def test_a_title_finds_its_page_first(found):
    pages = [page for page in project.toc_pages(project.ROOT) if project.is_notebook(project.ROOT / f"{page}.md")]
    titles = {
        page: re.search(r"^# (.*)$", project.read(project.ROOT / f"{page}.md"), re.MULTILINE)[1] for page in pages
    }
    first = {page: [one["name"] for one in found(title)[0][:1]] for page, title in titles.items()}
    assert {page: names for page, names in first.items() if names != [page]} == {}


def test_titles_come_before_text_and_places_have_anchors(found):
    pages = found("momentum")[0]
    assert pages[0]["name"] == "book/fluctuations/momentum-and-currents"
    for query, kind in (("on-line learning equations", "theorem"), ("detailed balance", "term")):
        places = [place for page in found(query)[0] for place in page["places"]]
        assert [place for place in places if place["kind"] == kind and place["anchor"]]


def test_lines_of_results_hold_no_code(opened):
    with opened("search.html?q=learning+rate") as (tab, faults):
        tab.get_by_text("pages found").wait_for()
        texts = tab.locator("#search-results p.context").all_inner_texts()
        assert len(texts) == 10 and all(40 < len(text) < 300 for text in texts)
        assert not [text for text in texts if "\\" in text or "import " in text or " = " in text]
        assert tab.locator("#search-results p.context mark").count() >= 10
        tab.locator("button.search-more").click()
        tab.wait_for_function("document.querySelectorAll('#search-results ul.search > li').length > 10")
        browser_checks.lighten(tab)
        browser_checks.equations_to_words(tab)
        assert browser_checks.rules(tab) + browser_checks.contrast(tab) + faults == []


@pytest.fixture
def reading(opened):
    """Opens a chapter on a desk."""
    return lambda path="book/scaling/closure-problem.html", **options: opened(
        path, **{"viewport": browser_checks.DESK} | options
    )


def box(tab):
    return tab.locator("#preview:visible")


def away(tab):
    tab.mouse.move(1, 1)
    tab.locator("#preview").wait_for(state="hidden")


def test_an_equation_is_previewed_under_the_mouse_and_goes(reading):
    with reading() as (tab, faults):
        browser_checks.equations(tab)
        link = tab.locator(EQUATION).first
        link.hover()
        box(tab).locator("mjx-container").first.wait_for()
        assert link.get_attribute("aria-describedby") == "preview"
        box(tab).hover()  # it may be pointed at
        tab.wait_for_timeout(600)
        assert box(tab).count() == 1
        assert tab.locator("#preview [id]").count() == 0, "a name that is there twice"
        tab.keyboard.press("Escape")
        tab.locator("#preview").wait_for(state="hidden")
        link.hover()
        tab.mouse.move(0, 0)
        link.hover()
        box(tab).wait_for()
        away(tab)
        assert link.get_attribute("aria-describedby") is None and faults == []


@pytest.mark.parametrize(
    ("page", "link", "shown", "fetched"),
    [
        ("foundations/committee-in-general", "a[href^='#fig-']", "figure img", 0),
        ("scaling/closure-problem", "a[href*='committee-in-general.html#thm-']", "div.proof mjx-container", 1),
        ("scaling/closure-problem", "a[href*='committee-in-general.html#equation-']", "div.math mjx-container", 1),
        ("scaling/closure-problem", "a[href*='glossary.html#term-']", "dl dd", 1),
        ("scaling/closure-problem", "a[href*='bibliography.html#']", "div.citation", 1),
    ],
)
def test_each_kind_is_previewed_at_the_focus_and_fetched_once(reading, page, link, shown, fetched):
    with reading(f"book/{page}.html") as (tab, faults):
        browser_checks.equations(tab)
        asked = []
        tab.on("request", lambda request: asked.append(request.url))
        places = tab.locator(f"article {link}:visible")
        assert places.count(), "the page has no such link to look at"
        place = places.first
        for _ in range(2):
            place.focus()
            box(tab).locator(shown).first.wait_for()
            assert box(tab).locator(".headerlink").count() == 0
            assert "\\(" not in box(tab).inner_text()
            tab.keyboard.press("Escape")
            tab.locator("#preview").wait_for(state="hidden")
            place.blur()
        assert len([url for url in asked if ".html" in url]) == fetched and faults == []


def test_a_page_of_words_shows_a_term_with_mathematics(reading):
    with reading("book/results.html") as (tab, faults):
        assert tab.evaluate("typeof MathJax") == "undefined"
        link = tab.locator("article a[href*='#thm-']").first
        link.hover()
        box(tab).locator("mjx-container").first.wait_for()
        assert "\\(" not in box(tab).inner_text() and faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_preview_can_be_read(reading, scheme):
    with reading(color_scheme=scheme) as (tab, faults):
        browser_checks.equations(tab)
        tab.locator("article a[href*='#thm-']:visible").first.hover()
        box(tab).locator("div.proof").wait_for()
        inside = box(tab).bounding_box()
        assert inside["x"] >= 0 and inside["x"] + inside["width"] <= browser_checks.DESK["width"]
        browser_checks.equations_to_words(tab)
        assert browser_checks.contrast(tab) + browser_checks.rules(tab) + faults == []


def test_a_finger_shows_a_preview_first_and_follows_second(opened):
    with opened("book/foundations/online-learning.html", has_touch=True) as (tab, faults):
        browser_checks.equations(tab)
        link = tab.locator("article a[href^='gaussian-averages.html#equation-']:visible").first
        link.tap()
        box(tab).locator("mjx-container").first.wait_for()
        place = box(tab).bounding_box()
        assert place["x"] == 0 and place["width"] == browser_checks.PHONE["width"]
        assert tab.url.endswith("online-learning.html") and box(tab).get_by_text("Go there").is_visible()
        tab.locator("article h1").tap()
        tab.locator("#preview").wait_for(state="hidden")
        link.tap()
        box(tab).wait_for()
        link.tap()
        tab.wait_for_url("**/gaussian-averages.html#equation-*")
        assert faults == []


@pytest.mark.parametrize(
    ("page", "limit"),
    [
        ("book/index", 900_000),
        ("book/paths", 900_000),
        ("book/library/scaling", 900_000),
        ("search", 900_000),
        ("book/summaries/fields", 1_400_000),
        ("book/foundations/online-learning", 2_500_000),
        ("book/fluctuations/real-data", 2_500_000),
    ],
)
def test_what_a_page_fetches(opened, page, limit):
    """Bytes of all answers, before any is kept and without compression."""
    with opened("404.html", viewport=browser_checks.DESK) as (tab, _):
        sizes = {}
        tab.context.clear_cookies()
        tab.on("requestfinished", lambda one: sizes.update({one.url: one.sizes()["responseBodySize"]}))
        cdp = tab.context.new_cdp_session(tab)
        cdp.send("Network.setCacheDisabled", {"cacheDisabled": True})
        tab.goto(tab.url.replace("404", page))
        tab.wait_for_load_state("networkidle")
        browser_checks.equations(tab)
        tab.wait_for_load_state("networkidle")
        assert 100_000 < sum(sizes.values()) < limit, sorted(sizes.items(), key=lambda one: -one[1])[:8]
