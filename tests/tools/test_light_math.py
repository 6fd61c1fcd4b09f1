"""Mathematics as markup: what a formula becomes, and that every formula of the pages that ask for it can become it."""

import re

import pytest
from docutils.utils.math import MathError
from small_site import build, read, write

from lib.services import claims
from tools.build import project
from tools.site import chapters
from tools.sphinx_ext.light_math import markup

FORMULA = re.compile(r"(?<!\\)\$\$?([^$]+)\$\$?")


@pytest.mark.parametrize(
    ("tex", "wanted"),
    [
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"x^23", "<msup><mi>x</mi><mn>2</mn></msup><mn>3</mn>"),
        (r"10,20", "<mn>10</mn><mo>,</mo><mn>20</mn>"),
        (r"k_{\rm eff}", "<msub><mi>k</mi><mi>eff</mi></msub>"),
        (r"\dot s_i", '<msub><mover accent="true"><mi>s</mi><mo stretchy="false">˙</mo></mover><mi>i</mi></msub>'),
        ("g'", '<mi>g</mi><mo lspace="0" rspace="0">′</mo>'),
        (r"\ln x", '<mo form="prefix" lspace="0.17em" rspace="0.17em">ln</mo><mi>x</mi>'),
        (r"\ln(x)", 'rspace="0">ln</mo>'),
        (r"\Delta", 'mathvariant="normal">Δ</mi>'),
        (r"\lvert x\rvert", '<mo form="prefix" stretchy="false">|</mo><mi>x</mi><mo form="postfix"'),
    ],
)
def test_a_formula_looks_as_in_tex(tex, wanted):
    assert wanted in markup(tex)


def test_a_long_formula_may_break_behind_a_relation_that_stands_in_no_parenthesis():
    assert markup("a=b").count("<math") == 1
    made = markup(r"f(a,b,c,d,e)=1+2+3+4+5\le6")
    assert made.count("</math><wbr><math>") == made.count('<mo form="infix">') == 6


def test_pages_that_ask_for_markup_need_no_script(tmp_path):
    text = "# Page\n\nA {math}`x^2` in {doc}`light`.\n\n| one | two |\n| --- | --- |\n"
    text += "| $y^2$ | *many* |\n| [here](https://example.org) | |\n"
    light = f"---\nmathematics: markup\n---\n{text}"

    def made(light):
        write(tmp_path, {"index": f"{text}\n```{{toctree}}\nlight\n```\n", "light": light})
        assert build(tmp_path, "tools.sphinx_ext.light_math", first="index") == (0, "")
        return read(tmp_path, "light"), read(tmp_path, "index")

    page, other = made(light)
    assert page.select_one("p math msup") and not page.select("span.math, script[src*=mathjax]")
    assert [cell.get_text() for cell in page.select("td")] == ["y2", "many", "here", ""] and not page.select("td p")
    assert page.select_one("td > a.external") and other.select("td p") and not other.select("math")
    assert page.select_one("p > a.internal").get_text() == "Page" and not page.select("p a > span")
    assert other.select_one("p a > span.doc")
    assert other.select_one("span.math") and other.select("script[src*=mathjax]")
    page, _ = made(light + "A letter {math}`y` or {math}`\\kappa`, {math}`J_i`, but {math}`\\Delta` and {math}`2`.\n")
    assert [letter.get_text() for letter in page.select("var")] == ["y", "κ", "Ji"] and page.select_one("var > sub")
    assert [node.get_text() for node in page.select("math")][-2:] == ["Δ", "2"]
    page, _ = made(light + "Only a script can set $\\strange$.\n")
    assert page.select_one("math") and [node.get_text() for node in page.select("span.math")] == [r"\(\strange\)"]


def test_every_formula_of_these_pages_can_be_set():
    texts = [project.read((project.ROOT / page).with_suffix(".md")) for page in project.toc_pages(project.ROOT)]
    texts = [text for text in texts if chapters.front_matter(text).get("mathematics") == "markup"]
    said = [(one.statement, one.locator, one.printed or "", one.right or "") for one in claims.declared().values()]
    formulas = {tex for text in [*texts, *map(" ".join, said)] for tex in FORMULA.findall(text)}
    assert len(texts) > 10 and len(formulas) > 1000
    wrong = []
    for tex in formulas:
        try:
            wrong += [tex] if "\\" in markup(tex) else []
        except MathError:
            wrong.append(tex)
    assert wrong == []
