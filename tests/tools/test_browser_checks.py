"""Each check in the browser finds the fault it is there for (and accepts the sound page)."""

import pytest
from playwright.sync_api import sync_playwright

from tools.site import browser, browser_checks

pytestmark = pytest.mark.skipif(browser.find() is None, reason=browser.missing())

# Stands in for MathJax: sets every equation after a moment.
SETTER = """
window.MathJax = {startup: {promise: new Promise(done => addEventListener("load", () => setTimeout(() => {
  for (const node of document.querySelectorAll(".math"))
    node.innerHTML = "<mjx-container tabindex=0><i>" + node.innerHTML + "</i></mjx-container>";
  done();
}, 50)))}};
"""
FOLDER = """
const box = document.querySelector(".toggle");
box.querySelector("button").addEventListener("click", () => box.classList.toggle("toggle-hidden"));
"""
SOUND = """<!DOCTYPE html>
<html lang="en"><head><title>A page</title><link rel="icon" href="data:,">
<style>
  body { background: white; color: #222 }
  a { color: #0b5cc9 }
  .toggle-hidden div { visibility: hidden }
  .wide { overflow-x: auto }
  .wide div { width: 900px; text-align: right; background: #eee }
  @media (prefers-color-scheme: dark) {
    body { background: #121212; color: #ddd }
    a { color: #8bf }
    img { filter: invert(1) }
    .wide div { background: #222 }
  }
</style>
<script src="setter.js"></script></head><body><main><article>
<h1 id="top">Title</h1><p>Text with <span class="math">x + y</span> and <a href="#top">a link</a>.</p>
<p><img src="a.svg" alt="A line." width="200" height="100"></p>
<div class="wide" tabindex="0"><div>Wide</div></div>
<details><summary>Show the code</summary><pre><span class="k">x</span></pre></details>
<div class="toggle toggle-hidden"><p>Solution <button class="toggle-button">Show</button></p>
<div>The answer.</div></div>
</article></main><script src="folder.js"></script></body></html>
"""
PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><path d="M10 90 L190 10" stroke="black" '
    'stroke-width="3"/></svg>'
)


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright, browser.start(playwright) as program:
        yield program


@pytest.fixture
def problems(chromium, tmp_path):
    """All problems of a page, given its text and what differs in the files beside it."""

    def found(text, **files):
        beside = {"setter.js": SETTER, "folder.js": FOLDER, "a.svg": PICTURE} | files
        for name, content in ({"page.html": text} | beside).items():
            (tmp_path / name).write_text(content)
        with browser.serve(tmp_path) as server, browser.opened(chromium, server, "page.html") as (page, faults):
            return [*browser_checks.problems(page), *browser_checks.thorough(page), *faults]

    return found


def test_sound_page_passes(problems):
    assert problems(SOUND) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<script src="setter.js"></script>', "", "MathJax did not start"),
        ("x + y", '<b data-mjx-error="Missing brace">x</b>', "equation has an error: Missing brace"),
        ("x + y", "<mjx-merror>wrong</mjx-merror>", "equation has an error: wrong"),
        ("</article>", '<script>console.error("broken")</script></article>', "console: broken"),
        ("</article>", "<script>undefined.broken</script></article>", "script error: Cannot read properties"),
        ("</article>", '<img src="absent.svg" alt="None."></article>', "absent.svg"),
        (
            "</article>",
            '<script src="http://example.org/x.js"></script></article>',
            "asked for http://example.org/x.js",
        ),
        (
            "</article>",
            '<script>fetch("http://127.0.0.1:1/x").catch(() => 0)</script></article>',
            "asked for http://127.0.0.1:1/x",
        ),
        ("</article>", '<script>new WebSocket("ws://127.0.0.1:1/")</script></article>', "opened a socket"),
        (".wide { overflow-x: auto }", "", "the page is 9"),
        (".wide { overflow-x: auto }", ".wide { overflow-x: hidden }", "sticks out of the window: Wide"),
        ('<div class="wide" tabindex="0">', '<div class="wide">', "scrollable-region-focusable"),
        ("<details>", "<details open>", "part 1 is open from the start"),
        ("<summary>", '<summary onclick="event.preventDefault()">', "part 1 does not open"),
        ("<summary>", '<summary onkeydown="event.preventDefault()">', "article summary does not close by keyboard"),
        (
            "<summary>",
            '<summary onclick="if (event.detail) event.preventDefault()">',
            "article summary does not close by a click",
        ),
        (
            "<button class",
            "<button onkeydown='event.preventDefault()' class",
            "toggle-button does not close by keyboard",
        ),
        (
            "</article>",
            "<details open><summary>More</summary><p>Text</p></details></article>",
            "part 3 is open from the start",
        ),
        (
            "</article>",
            "<details><summary onclick='return false'>More</summary><p>Text</p></details></article>",
            "part 3 does not open",
        ),
        ("a { color: #0b5cc9 }", "a { color: #9bf }", "in light mode: color-contrast"),
        ("a { color: #8bf }", "a { color: #0b5cc9 }", "in dark mode: color-contrast"),
        ("Text with <span", "Text with <span style='color: #999'", "in light mode: color-contrast"),
        ("Text with", '<b style="color: black">Text</b> with', "in dark mode: color-contrast"),
        ('alt="A line."', "", "image-alt (critical)"),
        ('lang="en"', "", "html-has-lang (serious)"),
        ("img { filter: invert(1) }", "", "a.svg loses its ink in dark mode"),
        ("img { filter: invert(1) }", "img { filter: invert(1) opacity(0.1) }", "a.svg loses its ink in dark mode"),
    ],
)
def test_fault_is_found(problems, old, new, message):
    assert old in SOUND
    found = problems(SOUND.replace(old, new))
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("setter.js", "window.MathJax = {startup: {promise: Promise.resolve()}};", "equation is not set: x + y"),
        ("folder.js", "", "part 2 does not open"),
        ("folder.js", FOLDER.replace("toggle(", "remove("), "toggle-button does not close by keyboard"),
        ("a.svg", PICTURE.replace("black", "#eee"), "a.svg cannot be seen in light mode"),
        ("a.svg", "no picture", "a.svg cannot be seen in light mode"),
    ],
)
def test_fault_beside_the_page_is_found(problems, name, content, message):
    found = problems(SOUND, **{name: content})
    assert any(message in problem for problem in found), found


def test_equations_that_are_never_set_are_not_waited_for(problems, monkeypatch):
    monkeypatch.setattr(browser_checks, "MATH_SECONDS", 0.2)
    found = problems(SOUND, **{"setter.js": "window.MathJax = {startup: {promise: new Promise(() => 0)}};"})
    assert "MathJax did not finish in 0.2 s" in found


def test_a_lazy_picture_that_no_one_scrolled_to_is_fetched_and_looked_at(problems):
    far = '<details><summary>At full size</summary><div style="height: 30000px"></div><img src="b.svg" alt="A line." '
    text = SOUND.replace("</article>", far + 'width="200" height="100" loading="lazy"></details></article>')
    assert problems(text, **{"b.svg": PICTURE}) == []
    assert "image b.svg cannot be seen in light mode" in problems(text, **{"b.svg": PICTURE.replace("black", "#eee")})


def test_each_look_of_text_is_checked_once_and_a_hidden_one_not_at_all(problems):
    pale = '<p style="color: #999">Pale</p>'
    found = problems(SOUND.replace("</article>", 3 * pale + "</article>"))
    assert sum("light mode: color-contrast" in problem for problem in found) == 1
    hidden = '<p style="color: #999; display: none">Pale</p>'
    assert problems(SOUND.replace("</article>", hidden + "</article>")) == []
