"""What a reader does with the site as a whole: switch between light and dark, and move about on a phone."""

import hashlib
import re

import pytest

from lib.services import claims
from tools.build import project
from tools.site import browser_checks

CHAPTERS = [page for page in project.toc_pages(project.ROOT) if page.count("/") > 1 and "summaries" not in page]
CHAPTERS = [page for page in CHAPTERS if project.is_notebook(project.ROOT / f"{page}.md")]
CHAPTER = CHAPTERS[0]


@pytest.fixture
def desk(opened):
    """Opens a page in a window of a desk."""
    return lambda path, **options: opened(path, **{"viewport": browser_checks.DESK} | options)


def search_word(page):
    """The longest word of a page's title."""
    lines = project.read(project.ROOT / f"{page}.md").splitlines()
    title = next(line for line in lines if line.startswith("# "))
    return max(re.findall(r"[a-z]+", title.lower()), key=len)


def test_search_from_a_page(desk):
    word = search_word(CHAPTERS[-1])
    with desk(f"{CHAPTER}.html") as (tab, faults):
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


def paper(tab):
    return tab.evaluate("getComputedStyle(document.body).backgroundColor")


def test_color_mode_is_switched_and_kept(desk):
    with desk(f"{CHAPTER}.html", color_scheme="light") as (tab, faults):
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


def test_download_menu_leads_to_the_notebook(desk):
    with desk(f"{CHAPTER}.html") as (tab, _):
        link = tab.locator(f".dropdown-download-buttons a[href$='{CHAPTER}.ipynb']")
        assert not link.is_visible()
        tab.locator(".dropdown-download-buttons > button").click()
        link.wait_for()


def test_contents_open_on_a_phone(opened):
    with opened(f"{CHAPTER}.html") as (tab, faults):
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
    with opened(f"{CHAPTER}.html") as (tab, faults):
        link = tab.locator("nav.page-toc a[href='#exercises']:visible")
        assert link.count() == 0
        tab.locator("button.secondary-toggle:visible").click()
        link.click()
        assert tab.url.endswith("#exercises")
        assert faults == []


@pytest.mark.parametrize("page", [CHAPTERS[2], "book/criticality/change-of-variables"])
def test_a_slider_moves_the_figure_by_keyboard_and_by_mouse(opened, page):
    with opened(f"{page}.html") as (tab, faults):
        box = tab.locator("figure.explorable").first
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


EQUATIONS = """() => {
    const shown = [...document.querySelectorAll('mjx-container[display="true"]')].filter(one => one.clientWidth);
    return shown.map(one => [parseFloat(getComputedStyle(one).fontSize), one.scrollWidth - one.clientWidth]);
}"""


def test_an_equation_is_as_large_as_its_place_allows(opened):
    """It shrinks where it would be cut, to no less than half, and is as large again where there is room again."""
    with opened("book/foundations/committee-in-general.html") as (tab, faults):
        phone = tab.evaluate(EQUATIONS)
        tab.set_viewport_size({"width": 1600, "height": 900})
        tab.wait_for_timeout(500)
        large = tab.evaluate(EQUATIONS)
        whole = max(size for size, _ in phone)
        assert len(phone) == len(large) > 20 and min(size for size, _ in large) > 0.8 * whole
        assert all(there >= here for (there, _), (here, _) in zip(large, phone))
        assert whole / 2 < min(size for size, _ in phone) < 0.8 * whole
        assert all(hidden <= 1 for _, hidden in phone + large)
        tab.set_viewport_size(browser_checks.DESK)
        tab.wait_for_timeout(500)
        assert all(hidden <= 1 for _, hidden in tab.evaluate(EQUATIONS))
        assert faults == []


ALONE = """() => {
    const alone = [], range = document.createRange();
    for (const formula of document.querySelectorAll("span.math")) {
        const text = formula.nextSibling;
        if (text?.nodeType !== Node.TEXT_NODE || !/^[.,;:)]/.test(text.data)) continue;
        range.setStart(text, 0);
        range.setEnd(text, 1);
        const [sign, before] = [range.getBoundingClientRect(), formula.getBoundingClientRect()];
        if (sign.width) alone.push(sign.left < before.right - 2 && sign.top > before.top + 8);
    }
    return alone;
}"""


def test_no_line_begins_with_the_comma_of_a_formula(opened):
    with opened("book/fluctuations/real-data.html") as (tab, faults):
        for width in (390, 700, 1200):
            tab.set_viewport_size({"width": width, "height": 900})
            tab.wait_for_timeout(500)
            alone = tab.evaluate(ALONE)
            assert len(alone) > 50 and not any(alone), sum(alone)
        assert faults == []


DIGITS = """box => {
    const digits = [...box.querySelectorAll("[id*=xtick_] use, [id*=ytick_] use")];
    const height = Math.max(...digits.map(digit => digit.getBoundingClientRect().height));  // not that of a minus
    const picture = box.querySelector(".explorable-picture");
    return [height, picture.scrollWidth - picture.clientWidth, picture.tabIndex];
}"""


@pytest.mark.parametrize(
    ("page", "narrow"),
    [("book/index", True), (CHAPTER, True), (CHAPTERS[-1], True), ("book/scaling/closure-problem", False)],
)
def test_a_slider_can_be_read_on_a_phone(opened, page, narrow):
    """Digits are 8 pixels high; what is too wide for that scrolls inside its box, also by keyboard, never the page."""
    with opened(f"{page}.html") as (tab, faults):
        for box in tab.locator("figure.explorable").all():
            height, hidden, order = box.evaluate(DIGITS)
            assert height > 7.8 and (hidden > 0) != narrow and order == (0 if hidden else -1), (height, hidden, order)
        assert browser_checks.overflow(tab) == faults == []
        wide = "() => document.querySelector('.explorable-picture').scrollWidth"
        light = tab.evaluate(wide)
        browser_checks.dark(tab)
        assert tab.evaluate(wide) == light
        tab.set_viewport_size(browser_checks.DESK)
        first = tab.locator("figure.explorable").first
        tab.wait_for_function("box => box.tabIndex === -1", arg=first.locator(".explorable-picture").element_handle())
        assert first.evaluate(DIGITS)[1] == 0


def test_a_link_to_a_check_opens_the_folded_line(opened):
    with opened("book/foundations/committee-in-general.html#ledger-online-bridge") as (tab, faults):
        tab.locator("#ledger-online-bridge").wait_for(state="visible")
        assert faults == []


LEDGER = "book/ledger/worschech2024"
SHOWN = "() => [...document.querySelectorAll('li.claim')].filter(row => !row.hidden).map(row => ({...row.dataset}))"


def test_the_ledger_is_filtered_and_sorted_and_its_address_tells_how(opened):
    with opened(f"{LEDGER}.html?verdict=error") as (tab, faults):
        every = tab.locator("li.claim").count()
        errors = tab.evaluate(SHOWN)
        assert 0 < len(errors) < every and {row["verdict"] for row in errors} == {"error"}
        assert tab.locator(".claims-control output").inner_text() == f"{len(errors)} of {every} rows"
        tab.locator("select[name=verdict]").select_option("all")
        chapter = tab.locator("select[name=chapter] option").nth(1).inner_text()
        assert re.match(r"\d+\. ", chapter)
        tab.locator("select[name=chapter]").select_option(chapter)
        assert len({row["chapter"] for row in tab.evaluate(SHOWN)}) == 1
        tab.locator("select[name=chapter]").select_option("all")
        tab.locator("select[name=sort]").select_option("nearest to the tolerance first")
        tab.locator("select[name=size]").select_option("also at full size")
        used = [float(row.get("full", -1)) for row in tab.evaluate(SHOWN)]
        assert len(used) > 1 and used == sorted(used, reverse=True)
        assert tab.url.endswith("?size=full&sort=margin")
        tab.reload()
        assert [float(row.get("full", -1)) for row in tab.evaluate(SHOWN)] == used
        assert faults == []


def test_a_link_to_a_row_shows_it_whatever_the_filter(opened):
    with opened(f"{LEDGER}.html?verdict=slip#ledger-scaling-eq89") as (tab, faults):
        assert tab.locator("#ledger-scaling-eq89").is_visible() and "?" not in tab.url
        assert faults == []


def test_the_ledger_is_whole_without_a_script(opened):
    with opened(f"{LEDGER}.html?verdict=slip", java_script_enabled=False) as (tab, _):
        rows = tab.locator("li.claim")
        declared = [one for one in claims.declared().values() if one.source.citation == "worschech2024"]
        assert rows.count() == len(declared) > 100
        assert rows.last.is_visible() and tab.locator(".claims-control").count() == 0


@pytest.mark.parametrize(
    "page",
    [
        *(page for page in project.toc_pages(project.ROOT) if page.startswith("book/ledger")),
        "book/corrections",
        "book/results",
        "book/notation",
    ],
)
def test_pages_of_many_rows_stay_light(opened, page):
    with opened(f"{page}.html", viewport={"width": 1400, "height": 900}) as (tab, faults):
        assert tab.locator("*").count() <= 15_000
        assert tab.evaluate("document.documentElement.scrollHeight") <= 20_000
        assert faults == []
