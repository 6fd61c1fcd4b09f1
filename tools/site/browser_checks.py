"""What is checked on a page in a browser.  Each function takes Playwright's page and returns a list of problems, empty
if all is well.

:func:`problems` looks at a page as a telephone shows it; :func:`thorough` does what one page of each kind answers for
all of them.
"""

from pathlib import Path

import axe_playwright_python

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
GRAVE = ("serious", "critical")  # the impacts that fail a page; axe also reports what is a matter of taste
BY_COLOR = ["color-contrast", "link-in-text-block"]
MATH_SECONDS = 900  # only a script that died takes so long
SETTLE = 400  # ms; the theme makes boxes that scroll reachable by keyboard 300 ms after the window changed

EQUATIONS = """async seconds => {
    const all = [...document.querySelectorAll(".math")];
    if (!all.length) return [];
    if (!window.MathJax?.startup?.promise) return ["MathJax did not start"];
    const late = new Promise(done => setTimeout(done, 1000 * seconds, "late"));
    if (await Promise.race([MathJax.startup.promise, late]) === "late")
        return [`MathJax did not finish in ${seconds} s`];
    const bare = all.filter(node => !node.querySelector("mjx-container"));
    const wrong = [...document.querySelectorAll("mjx-merror, [data-mjx-error]")];
    return [...bare.map(node => `equation is not set: ${node.textContent.trim().slice(0, 60)}`),
            ...wrong.map(node => `equation has an error: ${node.dataset.mjxError ?? node.textContent}`)];
}"""


def equations(page):
    """Wait for MathJax; every equation of the page is set, and none holds an error."""
    return page.evaluate(EQUATIONS, MATH_SECONDS)


# Four fifths of a chapter's elements are the colored words of its code; every later step is quicker with one of each
# kind.
FEW_WORDS = """() => {
    const kinds = new Set();
    for (const word of document.querySelectorAll("article pre span:not(:has(*))")) {
        const kind = [word, word.parentElement, word.closest(".admonition")].map(node => node?.className).join();
        if (kinds.has(kind)) word.replaceWith(word.textContent);
        kinds.add(kind);
    }
    document.querySelectorAll("article pre").forEach(code => code.normalize());
}"""


def lighten(page):
    """Make a page quicker to check, and leave nothing to be caught halfway: code loses most of its colors, and changes
    are sudden.
    """
    page.evaluate(FEW_WORDS)
    page.add_style_tag(content="*, ::before, ::after { transition: none !important; animation: none !important }")


CONTROLS = ("article summary", "article button.toggle-button")
SHOWN = """control => {
    const box = control.closest("details, .toggle");
    const shown = node => node.checkVisibility({opacityProperty: true, visibilityProperty: true});
    return [...box.children].some(node => !node.contains(control) && shown(node));
}"""


# A click from a script is a hundred times quicker than one by the mouse.
OPEN = f"""controls => {{
    const shown = {SHOWN};
    const found = [];
    for (const [index, control] of controls.entries()) {{
        if (shown(control)) found.push(`folded part ${{index + 1}} is open from the start`);
        else control.click();
        if (!shown(control) || control.tabIndex < 0) found.push(`folded part ${{index + 1}} does not open`);
    }}
    return found;
}}"""


def folded(page):
    """What is folded (solutions, cells) is folded, and opens; it stays open."""
    return page.eval_on_selector_all(", ".join(CONTROLS), OPEN)


def by_hand(page):
    """The first of each kind of what is folded, here open, closes and opens by keyboard, and closes by the mouse."""
    found = []
    for kind in CONTROLS:
        control = page.locator(kind).first
        if not page.locator(kind).count():
            continue
        for act, wanted, what in (
            (lambda: control.press("Enter"), False, "close by keyboard"),
            (lambda: control.press("Enter"), True, "open by keyboard"),
            (control.click, False, "close by a click"),
        ):
            act()
            found += [f"the first {kind} does not {what}"] if control.evaluate(SHOWN) != wanted else []
    return found


OVERFLOW = """() => {
    const limit = document.documentElement.clientWidth, wide = document.scrollingElement.scrollWidth;
    const scrolls = node => node
        && (["auto", "scroll"].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
    const out = [...document.querySelectorAll("article *")].filter(
        node => node.getBoundingClientRect().right > limit + 1
        && !node.parentElement.closest("mjx-container, svg") && node.checkVisibility({visibilityProperty: true})
        && !scrolls(node.parentElement));
    const name = node => `${node.localName}.${node.className}`;
    return [...(wide > limit ? [`the page is ${wide} px wide in a window of ${limit} px`] : []),
            ...out.slice(0, 5).map(
                node => `${name(node)} sticks out of the window: ${node.textContent.trim().slice(0, 60)}`)];
}"""


def overflow(page):
    """The page is no wider than its window; what is wider lies in a box that scrolls, and is not cut off either."""
    return page.evaluate(OVERFLOW)


# A picture in a fold is fetched when it comes into view; until then it has no size, and waiting for it never ends.
LOAD = """images => Promise.all(images.map(image => {
    image.loading = "eager";
    return image.decode().catch(() => null);
}))"""
# Draws each image as the page shows it, filter and background included, and counts the pixels that stand out against
# the page.
INK = """async () => {
    const probe = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    const rgba = color => {
        probe.clearRect(0, 0, 1, 1); probe.fillStyle = color; probe.fillRect(0, 0, 1, 1);
        return probe.getImageData(0, 0, 1, 1).data;
    };
    const linear = Float64Array.from(
        {length: 256}, (_, v) => v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = (data, i) =>
        0.2126 * linear[data[i]] + 0.7152 * linear[data[i + 1]] + 0.0722 * linear[data[i + 2]];
    const behind = node => {
        const color = node ? getComputedStyle(node).backgroundColor : "white";
        return rgba(color)[3] === 255 ? color : behind(node.parentElement);
    };
    const images = [];
    for (const node of document.querySelectorAll("article img")) {
        const name = node.getAttribute("src").split("/").pop(), box = node.getBoundingClientRect();
        if (!node.checkVisibility() || box.width < 1 || box.height < 1) continue;
        if (!node.complete || !await node.decode().then(() => true, () => false)) { images.push([name, 0]); continue; }
        const canvas = new OffscreenCanvas(box.width, box.height), pen = canvas.getContext("2d"),
            style = getComputedStyle(node);
        const paper = behind(node.parentElement), base = luminance(rgba(paper), 0);
        pen.fillStyle = paper;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.filter = style.filter;
        pen.globalAlpha = style.opacity;
        pen.fillStyle = style.backgroundColor;
        pen.fillRect(0, 0, canvas.width, canvas.height);
        pen.drawImage(node, 0, 0, canvas.width, canvas.height);
        const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
        let ink = 0;
        for (let i = 0; i < data.length; i += 4) {
            const other = luminance(data, i);
            ink += (Math.max(base, other) + 0.05) / (Math.min(base, other) + 0.05) >= 3;
        }
        images.push([name, 4 * ink / data.length]);
    }
    return images;
}"""
LEAST_INK = 0.003  # a plot's axes and labels alone cover more of it


def ink(page):
    """Of each visible image of the text: its name, and the part of its area that has a contrast of 3 or more with the
    page.
    """
    return [tuple(pair) for pair in page.evaluate(INK)]


def legible(in_light, in_dark):
    """Images show something in light mode, and as much of it in dark mode, given what :func:`ink` found in each."""
    found = [f"image {name} cannot be seen in light mode" for name, part in in_light if part < LEAST_INK]
    lost = [name for (name, before), (_, after) in zip(in_light, in_dark, strict=True) if after < 0.75 * before]
    return found + [f"image {name} loses its ink in dark mode" for name in lost]


def dark(page):
    """Show the page as a reader sees it whose system asks for dark colors; a page without the book's theme follows the
    system itself.
    """
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("(document.documentElement.dataset.theme ?? 'dark') === 'dark'")


def resize(page, size):
    page.mouse.move(0, 0)  # or a link that comes to lie under it has another color
    page.set_viewport_size(size)
    page.wait_for_timeout(SETTLE)


# axe does not look into a style sheet's generated content, where MathJax draws its glyphs: for its rules each equation
# is a word (of two letters, since it leaves single ones to a human) of the same color, size and place.
WORDS = """() => {
    const sizes = [...document.querySelectorAll("mjx-container")].map(
        node => [node, node.firstElementChild.getBoundingClientRect()]);
    for (const [node, box] of sizes) {
        const word = document.createElement("span");
        word.textContent = "xy";
        word.style.cssText = `display: inline-block; width: ${box.width}px; height: ${box.height}px`;
        node.replaceChildren(word);
    }
}"""
# One text of each look is enough: its own color, size and weight, and every background behind it.
LOOKS = """() => {
    const known = new Map();
    const paper = node => {
        if (!node) return "";
        if (!known.has(node)) {
            const style = getComputedStyle(node),
                plain = style.backgroundColor === "rgba(0, 0, 0, 0)" && style.backgroundImage === "none";
            const own = plain && style.opacity === "1" ? ""
                : `|${style.backgroundColor} ${style.backgroundImage} ${style.opacity}`;
            known.set(node, paper(node.parentElement) + own);
        }
        return known.get(node);
    };
    const looks = new Map();
    for (const node of document.querySelectorAll("body *")) {
        if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())
            || !node.checkVisibility()) continue;
        const style = getComputedStyle(node);
        const look = [style.color, style.fontSize, style.fontWeight, !!node.closest("a"), paper(node)].join();
        if (!looks.has(look)) looks.set(look, node);
    }
    return [...looks.values()];
}"""


def equations_to_words(page):
    """Prepare a page for axe; its equations cannot be checked otherwise afterwards."""
    page.evaluate(WORDS)
    page.evaluate(AXE.read_text(encoding="utf-8"))


# docutils writes the bibliography as a list whose entries have a role (doc-biblioentry) that axe does not count as a
# list's.
NOT_OURS = {"aria-required-children": '<div role="list" class="citation-list">'}


def _axe(page, context, options):
    options = {"resultTypes": ["violations"], "preload": False} | options
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:160]}: {' '.join(node['failureSummary'].split())[:240]}"
        for rule in page.evaluate(f"options => axe.run({context}, options)", options)["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"][:3]
        if node["html"] != NOT_OURS.get(rule["id"])
    ]


def rules(page):
    """Accessibility rules of axe-core that do not depend on colors; what scrolls can be scrolled by keyboard."""
    return _axe(page, "document", {"rules": {rule: {"enabled": False} for rule in BY_COLOR}})


def contrast(page):
    """Every text, and every equation, stands out against what is behind it."""
    return _axe(page, f"{{include: ({LOOKS})()}}", {"runOnly": BY_COLOR})


def problems(page):
    """On a page that was just opened in light mode and a window of the size ``PHONE``: everything is set, folded parts
    open, nothing sticks out, and it can be read aloud and read.  Folded parts stay open.
    """
    found = equations(page)
    lighten(page)
    found += folded(page)
    page.wait_for_timeout(SETTLE)
    found += overflow(page)
    equations_to_words(page)
    return found + rules(page) + [f"in light mode: {problem}" for problem in contrast(page)]


def thorough(page):
    """What one page of each kind is looked at for, after :func:`problems`: folding by hand, the desk, dark colors."""
    found = by_hand(page)
    folded(page)
    page.eval_on_selector_all("article img", LOAD)
    resize(page, DESK)
    found += [f"on a desk: {problem}" for problem in rules(page) + contrast(page)]
    light = ink(page)
    dark(page)
    return found + [f"in dark mode: {problem}" for problem in contrast(page)] + legible(light, ink(page))
