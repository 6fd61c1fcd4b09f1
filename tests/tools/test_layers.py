"""The reader's layer and the checker's: numbers for computed equations, one line of checks a section."""

from small_site import build, read, write

LAYERS = "tools.sphinx_ext.layers"
LINE = '```{{raw}} html\n<p class="ledger-line" id="ledger-{0}">Check {0}.</p>\n```\n'


def test_a_computed_equation_has_the_number_and_the_place_of_its_label(tmp_path):
    text = "# Page\n\n$$\na\n$$ (eq-typed)\n\n```{math}\n%eq-shown\nb\n```\n\nSee {eq}`eq-shown`, and {eq}`eq-typed`.\n"
    write(tmp_path, {"index": text})
    assert build(tmp_path, LAYERS, first="index") == (0, "")
    soup = read(tmp_path, "index")
    typed, shown = soup.select("div.math")
    assert (typed.select_one(".eqno").get_text()[:3], shown.select_one(".eqno").get_text()[:3]) == ("(1)", "(2)")
    assert "eq-shown" not in shown.get_text() and "b" in shown.get_text()
    links = {link.get_text(): link["href"] for link in soup.select("p a.reference")}
    assert links["(2)"] == "#equation-eq-shown" and soup.find(id="equation-eq-shown") is shown


def test_checks_stand_in_one_line_at_the_end_of_their_section(tmp_path):
    text = (
        f"# Page\n\n## One\n\n{LINE.format('a')}\nText.\n\n{LINE.format('b')}\n### Under\n\n{LINE.format('c')}\nMore.\n"
    )
    write(tmp_path, {"index": text + "\n## Two\n\nNothing.\n"})
    assert build(tmp_path, LAYERS, first="index") == (0, "")
    soup = read(tmp_path, "index")
    one, under = (soup.find(id=name) for name in ("one", "under"))
    assert [box.summary.get_text() for box in soup.select("details.checks")] == ["2 checks passed", "1 check passed"]
    first, second = soup.select("details.checks")
    assert first.parent is one and first.find_next_sibling().get("id") == "under"
    assert second.parent is under and second.find_previous_sibling().get_text() == "More."
    assert [line["id"] for line in soup.select("p.ledger-line")] == ["ledger-a", "ledger-b", "ledger-c"]
