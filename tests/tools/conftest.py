"""A small checkout, for the tests of what the build reads."""

import shutil

import pytest

from tools.build import project


@pytest.fixture
def checkout(tmp_path):
    """The files that a fingerprint covers, and a book of two pages."""
    for folder in ("lib", "tools"):
        shutil.copytree(project.ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "binder").mkdir()
    for name in ("_config.yml", "requirements.txt", "binder/requirements.txt"):
        shutil.copy(project.ROOT / name, tmp_path / name)
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nparts:\n- caption: A\n  chapters:\n  - file: book/part/a\n"
    )
    (tmp_path / "book" / "part").mkdir(parents=True)
    for name in ("index", "part/a"):
        (tmp_path / "book" / f"{name}.md").write_text("# Title\n")
    return tmp_path
