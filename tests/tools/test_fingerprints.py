"""What a page was made from: each change of it is seen, and nothing else is."""

import shutil
import sys

import nbformat
import pytest

from lib.services import presets
from tools.build import fingerprints, project

CELLS = [
    "from lib.services import ledger\nfrom lib.foundations import near",
    "ledger.check('langevin/x', near.f())",
]


def fingerprint(root, *more):
    """That of a chapter, foundations/langevin, which uses one module and reaches others through it."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in [*CELLS, *more]])
    path = root / "book" / "foundations" / "langevin.md"
    return fingerprints.of_page(root, path, made, fingerprints.surroundings(root))


@pytest.fixture
def chapter(checkout):
    (checkout / "lib" / "foundations" / "near.py").write_text(
        "def f():\n    from lib.foundations import far\n\n    return far.g()\n"
    )
    (checkout / "lib" / "foundations" / "far.py").write_text('"""Far."""\n\n\ndef g():\n    return 1\n')
    return checkout


def change(root, name, old, new):
    path = root / name
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)


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
        ("lib/foundations/table.csv", "", "1"),  # beside a module that is reached
        ("binder/requirements.txt", "numpy==", "numpy==9"),
    ],
)
def test_fingerprint_of_a_page_sees_every_input_of_its_result(chapter, name, old, new):
    before = fingerprint(chapter)
    assert fingerprint(chapter) == before
    change(chapter, name, old, new)
    after = fingerprint(chapter)
    assert [part for part in {**before, **after} if before.get(part) != after.get(part)] == [name]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lib/foundations/far.py", '"""Far."""', '"""Farther."""  # a comment\n\n'),
        ("lib/foundations/committee.py", "", "\nX = 1\n"),  # not reached
        ("lib/fields/renormalization/decimation.py", "", "\nX = 1\n"),
        ("lib/fields/renormalization/table.csv", "", "1"),
        ("lib/claims/foundations/online-learning.toml", "[[claim]]", "[[claim]]\nvalue = 1"),
        ("lib/claims/foundations/langevin.toml", 'statement = "', 'statement = "In other words: '),
        ("tools/build/project.py", "", "\n"),
        ("requirements.txt", "", "ruff==1"),  # no chapter uses it
        ("lib/__pycache__/x.pyc", "", "1"),
        ("book/index.md", "# Title", "# Another"),
    ],
)
def test_fingerprint_of_a_page_sees_nothing_else(chapter, name, old, new):
    before = fingerprint(chapter)
    change(chapter, name, old, new)
    assert fingerprint(chapter) == before


def test_a_checkout_that_moves_with_its_environment_executes_nothing_again(chapter, tmp_path, monkeypatch):
    before = fingerprint(chapter)
    moved = tmp_path / "elsewhere"
    shutil.copytree(chapter, moved, ignore=lambda folder, names: ["elsewhere"])
    for name, value in (("HOME", "/another"), ("MPLCONFIGDIR", "/another/fonts")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "prefix", str(moved / ".venv"))
    assert str(moved) in str(project.kernel_environment(moved)) and fingerprint(moved) == before


def test_a_page_that_reads_the_large_sets_sees_which_files_are_there(chapter, monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PHYSICS_OF_LEARNING_DATA", str(tmp_path / "data"))
    reading = "from lib.services import downloads"
    before, other = fingerprint(chapter, reading), fingerprint(chapter)
    (tmp_path / "data" / "images.gz").write_text("all of them")
    after = fingerprint(chapter, reading)
    assert [part for part in after if before.get(part) != after[part]] == ["the files of data"]
    assert fingerprint(chapter) == other


def test_fingerprint_sees_the_cells_the_preset_and_the_kernels(chapter, monkeypatch):
    monkeypatch.delenv(presets.ENVIRONMENT, raising=False)
    leaf = "lib/fields/renormalization/decimation.py"
    found = [
        fingerprint(chapter, *more)
        for more in ([], ["print(1)"], ["from lib.fields.renormalization import decimation"])
    ]
    assert leaf in found[2] and leaf not in found[0]
    assert leaf in fingerprint(chapter, "%timeit x"), "cells that are no plain Python may reach anything"
    assert project.cell_timeout(chapter) > 0
    monkeypatch.setenv(presets.ENVIRONMENT, "paper")
    found.append(fingerprint(chapter))
    assert project.cell_timeout(chapter) is None
    monkeypatch.setattr(project, "KERNELS", {"OMP_NUM_THREADS": "2"})
    found.append(fingerprint(chapter))
    assert all(one != other for n, one in enumerate(found) for other in found[:n])


def test_a_leaf_module_reaches_few_pages_of_the_book_and_what_changes_meanwhile_is_seen(tmp_path):
    prints = fingerprints.Fingerprints(project.ROOT, tmp_path / "kept.json")
    reaching = {name: [path.stem for path in prints.now if name in prints.now[path]] for name in (
        "lib/fields/renormalization/decimation.py", "lib/common/checks.py"
    )}  # fmt: skip
    leaf, common = reaching.values()
    assert "renormalization" in leaf and len(leaf) < 4 and len(common) == len(prints.now), reaching
    assert prints.changed_since() == []
    page = next(iter(prints.now))
    prints.seen, prints.now[page] = None, {}
    assert prints.changed_since() == [page]
