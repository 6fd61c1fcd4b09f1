"""What a page was made from: each change of it is seen, and nothing else is."""

import nbformat
import pytest

from lib.services import presets
from tools.build import fingerprints, project


@pytest.fixture
def chapter(checkout):
    """A function that gives the fingerprint of a chapter, foundations/langevin.

    It uses one module and reaches others through it.
    """
    path = checkout / "book" / "foundations" / "langevin.md"
    path.parent.mkdir()
    (checkout / "lib" / "foundations" / "near.py").write_text(
        "def f():\n    from lib.foundations import far\n\n    return far.g()\n"
    )
    (checkout / "lib" / "foundations" / "far.py").write_text('"""Far."""\n\n\ndef g():\n    return 1\n')
    cells = [
        "from lib.services import ledger\nfrom lib.foundations import near",
        "ledger.check('langevin/x', near.f())",
    ]

    def fingerprint(*more):
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in [*cells, *more]])
        return fingerprints.of_page(checkout, path, made, fingerprints.surroundings(checkout))

    return fingerprint


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lib/foundations/near.py", "far.g()", "-far.g()"),
        ("lib/foundations/far.py", "return 1", "return 2"),  # reached through near, and from inside a function
        ("lib/foundations/__init__.py", "", "\nX = 1\n"),
        ("lib/__init__.py", "", "\nX = 1\n"),
        ("lib/common/checks.py", "", "\nX = 1\n"),  # reached through the ledger
        ("lib/claims/foundations/langevin.toml", 'id = "langevin/', 'id = "langevin/other-'),
        ("lib/claims/sources.toml", "van Rossem", "Rossem"),
        ("lib/new-data.txt", "", "1"),
        ("requirements.txt", "numpy==", "numpy==9"),
    ],
)
def test_fingerprint_of_a_page_sees_every_input_of_its_result(checkout, chapter, name, old, new):
    before = chapter()
    assert chapter() == before
    path = checkout / name
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)
    after = chapter()
    assert [part for part in {**before, **after} if before.get(part) != after.get(part)] == [name]


def test_a_page_that_reads_the_large_sets_sees_which_files_are_there(checkout, chapter, monkeypatch, tmp_path):
    monkeypatch.setenv("PHYSICS_OF_LEARNING_DATA", str(tmp_path))
    reading = "from lib.services import downloads"
    before, other = chapter(reading), chapter()
    (tmp_path / "images.gz").write_text("all of them")
    after = chapter(reading)
    assert [part for part in after if before.get(part) != after[part]] == ["the files of data"] and chapter() == other


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lib/foundations/far.py", '"""Far."""', '"""Farther."""  # a comment\n\n'),
        ("lib/foundations/committee.py", "", "\nX = 1\n"),  # not reached
        ("lib/fields/renormalization/ising.py", "", "\nX = 1\n"),
        ("lib/claims/foundations/online-learning.toml", "[[claim]]", "[[claim]]\nvalue = 1"),
        ("lib/claims/foundations/langevin.toml", 'statement = "', 'statement = "In other words: '),
        ("tools/build/project.py", "", "\n"),
        ("lib/__pycache__/x.pyc", "", "1"),
        ("book/index.md", "# Title", "# Another"),
    ],
)
def test_fingerprint_of_a_page_sees_nothing_else(checkout, chapter, name, old, new):
    before, path = chapter(), checkout / name
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)
    assert chapter() == before


def test_fingerprint_sees_the_cells_the_preset_and_the_kernels(checkout, chapter, monkeypatch):
    monkeypatch.delenv(presets.ENVIRONMENT, raising=False)
    found = [chapter(), chapter("print(1)"), chapter("from lib.fields import ising")]
    assert "lib/fields/renormalization/ising.py" in found[2] and "lib/fields/renormalization/ising.py" not in found[0]
    assert project.cell_timeout(checkout) > 0
    monkeypatch.setenv(presets.ENVIRONMENT, "paper")
    found.append(chapter())
    assert project.cell_timeout(checkout) is None
    monkeypatch.setattr(project, "kernel_environment", lambda root: {"OMP_NUM_THREADS": "2"})
    found.append(chapter())
    assert all(one != other for n, one in enumerate(found) for other in found[:n])


def test_cells_that_are_no_plain_python_may_reach_anything(checkout, chapter):
    assert "lib/fields/renormalization/ising.py" in chapter("%timeit x")


def test_a_leaf_module_reaches_few_pages_of_the_book_and_the_checks_reach_all():
    root = project.ROOT
    around = fingerprints.surroundings(root)
    paths = project.notebooks(root)
    found = {p.stem: fingerprints.of_page(root, p, project.read_notebook(root, p), around) for p in paths}
    assert [stem for stem, parts in found.items() if "lib/fields/renormalization/ising.py" in parts] == [
        "renormalization"
    ]
    assert all("lib/common/checks.py" in parts for parts in found.values())
