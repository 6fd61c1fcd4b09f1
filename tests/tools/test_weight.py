"""What a page loads: rules that nothing uses go, icons that a rule shows stay, MathJax comes where it is needed."""

import base64
import io

import pytest
import tinycss2
from fontTools.ttLib import TTFont
from small_site import build, read, write

from tools.sphinx_ext import weight


@pytest.mark.parametrize(
    ("rule", "stays"),
    [
        (".known{a:b}", True),
        (".other{a:b}", False),
        ("p > .known.other{a:b}", False),
        (".other, .known{a:b}", True),
        ("#other{a:b}", False),
        ("p{a:b}", True),
        (".known:not(.other){a:b}", True),
        ("p:is(.other, .another){a:b}", True),
        ('a[href$=".other"]{a:b}', True),
        ("@media print{.other{a:b}}", False),
        ("@media print{.other{a:b} .known{c:d}}", True),
        ("@font-face{src:url(x)}", True),
    ],
)
def test_a_rule_stays_if_what_it_names_may_occur(rule, stays):
    kept = "".join(weight.used(tinycss2.parse_stylesheet(rule, True, True), {"known"}))
    assert bool(kept) is stays
    assert "@media" not in rule or ".other" not in kept


def test_a_site_without_mathematics_has_small_sheets_its_icons_and_no_mathjax(tmp_path):
    write(tmp_path, {"index": "# Start\n\n```{toctree}\na\n```\n", "a": "# A\n\n$$x$$\n"})
    assert build(tmp_path, "sphinx-mathjax-offline", "tools.sphinx_ext.weight", first="index") == (0, "")
    static = tmp_path / "_build" / "html" / "_static"
    scripts = {name: [node.get("src", "") for node in read(tmp_path, name)("script")] for name in ("index", "a")}
    assert [sum("mathjax/startup.js" in one for one in scripts[name]) for name in ("index", "a")] == [0, 1]
    sizes = sum(path.stat().st_size for path in (static / "mathjax").rglob("*.js"))
    assert not (static / "scripts" / "fontawesome.js").exists() and sizes < 1_500_000
    sheet = (static / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    assert len(sheet) < 150_000 and ".fa-bars" in sheet and ".fa-anchor" not in sheet
    font = TTFont(io.BytesIO(base64.b64decode(sheet.partition("data:font/woff;base64,")[2].partition('"')[0])))
    assert {0xF0C9, 0xF002} <= set(font.getBestCmap()) and 0xF13D not in font.getBestCmap()
