"""What Sphinx reads and writes again; ``test_build`` holds a site written in part against a whole one."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from tools.build import site
from tools.sphinx_ext import incremental


def environment(title="A page", label="here", number=(1,)):
    """What an environment of Sphinx says about one page, "a"."""
    title = nodes.title("", title)
    shown = dict.fromkeys(incremental.SHOWN) | {"titles": {"a": title}, "toc_secnumbers": {"a": {"": number}}}
    domains = dict.fromkeys(incremental.DOMAINS) | {"std": {"labels": {label: ("a", label, "A page")}}}
    cited = SimpleNamespace(key="han2021", citation_id="id1")
    return SimpleNamespace(domaindata=domains | {"cite": {"citations": [cited]}}, found_docs={"a", "b"}, **shown)


def test_a_page_is_read_again_when_its_executed_form_changes(tmp_path):
    folder = tmp_path / "_build" / "notebooks"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"{name}.ipynb").write_text("1")
    app = SimpleNamespace(srcdir=tmp_path, config=SimpleNamespace(root_doc="index"))
    env = SimpleNamespace(found_docs={"a", "b", "index", "prose"})
    assert sorted(incremental.outdated(app, env, None, None, None)) == ["a", "b", "index"]
    assert incremental.outdated(app, env, None, None, None) == ["index"]
    (folder / "b.ipynb").write_text("2")
    assert sorted(incremental.outdated(app, env, None, None, None)) == ["b", "index"]


@pytest.mark.parametrize("change", [{"title": "Another"}, {"label": "there"}, {"number": (2,)}])
def test_all_pages_are_written_when_what_they_show_of_each_other_changes(change):
    app, env = SimpleNamespace(book_workers=2, parallel=1), environment()
    assert sorted(incremental.written(app, env)) == ["a", "b"] and app.parallel == 2
    again = environment()
    again.book_inventory = env.book_inventory
    assert incremental.written(app, again) == []
    other = environment(**change)
    other.book_inventory = env.book_inventory
    assert sorted(incremental.written(app, other)) == ["a", "b"]


def test_a_plain_value_has_no_address_and_no_chance_in_it():
    class Thing:
        def __init__(self):
            self.names = {"b", "a"}

    assert incremental.plain(Thing()) == incremental.plain(Thing())
    assert "0x" not in repr(incremental.plain({"one": Thing(), "two": nodes.paragraph("", "text")}))


def test_everything_that_all_pages_are_made_with_is_seen(checkout):
    for name in ("book/references.bib", "book/_static/book.css", "book/_templates/a.html", "book/assignments/a.md"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("old")
    before = site.ground(checkout)
    assert site.ground(checkout) == before
    changed = ["_config.yml", "_toc.yml", "requirements.txt", "tools/build/book.py", *site.WITH[5:]]
    seen = set()
    for name in changed:
        file = checkout / name if (checkout / name).is_file() else next((checkout / name).iterdir())
        text = file.read_text()
        file.write_text(text + "\n")
        seen.add(site.ground(checkout))
        file.write_text(text)
    (checkout / "lib" / "new.py").touch()
    seen.add(site.ground(checkout))
    assert len(seen) == len(changed) + 1 and before not in seen


def test_the_last_site_is_taken_away_while_notebooks_run(tmp_path):
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "a.html").touch()
    site.put_aside(tmp_path)
    assert not (tmp_path / "html").exists() and (tmp_path / site.ASIDE / "a.html").exists()
    site.put_aside(tmp_path)  # a build that ended early leaves it there
    assert (tmp_path / site.ASIDE / "a.html").exists()
