"""What a reader does with the site as a whole: search, switch between light and dark, and move about on a phone."""

import hashlib
import re

import pytest

from tools.build import dependencies, project
from tools.site import address, browser_checks

CHAPTERS = list(dependencies.chapters(project.ROOT))
CHAPTER = CHAPTERS[0]


def search_word(page):
    """The longest word of a page's title."""
    title = next(
        line for line in (project.ROOT / f"{page}.md").read_text(encoding="utf-8").splitlines() if line.startswith("# ")
    )
    return max(re.findall(r"[a-z]+", title.lower()), key=len)


def results(tab):
    """Pages among the results, once the search has ended."""
    tab.get_by_text(re.compile("Search finished|did not match")).wait_for()
    links = tab.eval_on_selector_all(
        "#search-results ul.search li > a", "links => links.map(link => new URL(link.href).pathname)"
    )
    root = address.prefix(project.remote(project.ROOT))
    return {link.removeprefix(root).removesuffix(".html") for link in links}


@pytest.mark.parametrize("page", CHAPTERS)
def test_search_finds_chapter(opened, page):
    with opened(f"search.html?q={search_word(page)}") as (tab, faults):
        assert page in results(tab)
        assert faults == []


def test_search_from_a_page(opened):
    word = search_word(CHAPTERS[-1])
    with opened(f"{CHAPTER}.html") as (tab, faults):
        tab.keyboard.press("Control+k")
        tab.keyboard.type(word)
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"**/search.html?q={word}")
        found = tab.locator("#search-results li", has=tab.locator(f"a[href*='{CHAPTERS[-1]}']")).first
        found.locator("p.context").wait_for()  # the lines of the page in which the word stands
        assert word in found.inner_text().lower()
        found.locator("a").first.click()
        tab.wait_for_url(f"**/{CHAPTERS[-1]}.html*")
        assert faults == []


def test_word_that_no_page_has_is_not_found(opened):
    with opened("search.html?q=xylophone") as (tab, _):
        assert results(tab) == set()


@pytest.mark.parametrize("word", ["constructor", "__proto__", "hasOwnProperty", "toString"])
def test_what_every_object_has_is_searched_like_any_word(opened, word):
    with opened(f"search.html?q={word}") as (tab, faults):
        found = results(tab)
        assert "undefined" not in tab.locator("#search-results").inner_text() and None not in found
        assert faults == []


def test_a_dark_page_is_printed_light(opened):
    with opened(f"{CHAPTER}.html", color_scheme="dark") as (tab, faults):
        theme = "document.documentElement.dataset.theme"
        assert tab.evaluate(theme) == "dark"
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        drawn = tab.locator(".cell_output img, figure.explorable svg").first
        assert tab.evaluate(theme) == "light" and drawn.evaluate("one => getComputedStyle(one).filter") == "none"
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert tab.evaluate(theme) == "dark" and faults == []


def paper(tab):
    return tab.evaluate("getComputedStyle(document.body).backgroundColor")


def test_color_mode_is_switched_and_kept(opened):
    with opened(f"{CHAPTER}.html", color_scheme="light") as (tab, faults):
        seen = {tab.evaluate("document.documentElement.dataset.mode"): paper(tab)}
        for _ in range(2):
            tab.locator(".theme-switch-button:visible").click()
            seen[tab.evaluate("document.documentElement.dataset.mode")] = paper(tab)
        assert set(seen) == {"auto", "light", "dark"} and seen["auto"] == seen["light"] != seen["dark"]
        while tab.evaluate("document.documentElement.dataset.mode") != "dark":
            tab.locator(".theme-switch-button:visible").click()
        tab.goto(tab.url.replace(CHAPTER, CHAPTERS[1]))
        assert paper(tab) == seen["dark"]
        assert faults == []


def test_download_menu_leads_to_the_notebook(opened):
    with opened(f"{CHAPTER}.html") as (tab, _):
        link = tab.locator(f".dropdown-download-buttons a[href$='{CHAPTER}.ipynb']")
        assert not link.is_visible()
        tab.locator(".dropdown-download-buttons > button").click()
        link.wait_for()


def test_contents_open_on_a_phone(opened):
    with opened(f"{CHAPTER}.html", viewport=browser_checks.PHONE) as (tab, faults):
        link = tab.locator(f"nav a[href$='{CHAPTERS[1].split('/')[-1]}.html']:visible")
        assert link.count() == 0
        tab.locator("button.primary-toggle:visible").click()
        link.first.wait_for()
        tab.keyboard.press("Escape")
        link.first.wait_for(state="hidden")
        tab.locator("button.primary-toggle:visible").click()
        link.first.click()
        tab.wait_for_url(f"**/{CHAPTERS[1]}.html")
        assert faults == []


def test_sections_open_on_a_phone(opened):
    with opened(f"{CHAPTER}.html", viewport=browser_checks.PHONE) as (tab, faults):
        link = tab.locator("nav.page-toc a[href='#exercises']:visible")
        assert link.count() == 0
        tab.locator("button.secondary-toggle:visible").click()
        link.click()
        assert tab.url.endswith("#exercises")
        assert faults == []


EXPLORABLES = {
    "book/foundations/online-learning": "#online-learning-lean",
    "book/foundations/approaching-the-teacher": "#approaching-the-teacher-rate",
    "book/criticality/change-of-variables": "#change-of-variables-weight",
    "book/criticality/steps-in-many-dimensions": "#steps-in-many-dimensions-angle",
    "book/fields/training-as-sampling": "#training-as-sampling-width",
    "book/fields/sampling-in-practice": "#sampling-in-practice-step",
}


@pytest.mark.parametrize(("page", "figure"), EXPLORABLES.items())
def test_a_slider_moves_the_figure_by_keyboard_and_by_mouse(opened, page, figure):
    with opened(f"{page}.html", viewport=browser_checks.PHONE) as (tab, faults):
        box = tab.locator(figure)
        handle, sentence = box.locator("input[type=range]"), box.locator("[aria-live]")

        def look():
            picture = box.locator("svg").screenshot()
            return handle.get_attribute("aria-valuetext"), sentence.inner_text(), hashlib.sha256(picture).hexdigest()

        seen = [look()]
        handle.focus()
        tab.keyboard.press("ArrowRight")
        seen.append(look())
        place = handle.bounding_box()
        tab.mouse.click(place["x"] + place["width"] - 2, place["y"] + place["height"] / 2)
        seen.append(look())
        assert handle.input_value() == handle.get_attribute("max")
        for values in zip(*seen):
            assert len(set(values)) == 3, values
        assert box.locator("output").inner_text() == seen[-1][0]
        tab.keyboard.press("ArrowLeft")
        tab.keyboard.press("Home")
        assert handle.input_value() == "0"
        assert faults == []


def test_a_link_to_a_check_opens_the_folded_line(opened):
    with opened("book/foundations/online-learning.html#ledger-online-bridge") as (tab, faults):
        tab.locator("#ledger-online-bridge").wait_for(state="visible")
        assert faults == []
