"""Facts about the checkout: pages against the table of contents, launch links, the lock of versions."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import metadata, packages_distributions, version

import nbformat
import pytest
import without
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import lib
from tools.build import project

ROOT = project.ROOT
STATED = tomllib.loads(project.read(ROOT / "pyproject.toml"))["project"]


def pins(name):
    """The versions that a file of requirements pins here: a dict by canonical name."""
    lines = [line.split("#")[0].strip() for line in project.read(ROOT / name).splitlines() if line[:1] != "-"]
    needs = [Requirement(line) for line in lines if line]
    assert all(str(need.specifier).startswith("==") for need in needs)
    here = [need for need in needs if need.marker is None or need.marker.evaluate()]
    return {canonicalize_name(need.name): str(need.specifier).removeprefix("==") for need in here}


def test_the_books_pages_and_its_toc_agree():
    project.check_toc(ROOT)
    names = [path.stem for path in project.notebooks(ROOT)]
    assert "online-learning" in names and "ledger" not in names


@pytest.mark.parametrize("name", ["_toc.yml", "book/part/a.md"])
def test_a_file_that_is_not_utf_8_is_named_with_its_line(checkout, name):
    path = checkout / name
    path.write_bytes(path.read_bytes() + "# Umlaut: ü\n".encode("latin-1"))
    line = path.read_bytes().count(b"\n")
    with pytest.raises(ValueError, match=f"{name} must be UTF-8 text, got the byte 0xfc in line {line}: save"):
        project.notebooks(checkout)


def test_what_the_toc_and_the_folder_do_not_share_is_named(checkout):
    project.check_toc(checkout)
    part = checkout / "book" / "part"
    (checkout / "book" / "b.md").write_text("# B\n")
    with pytest.raises(ValueError, match="book/b is in book/ but not in _toc.yml"):
        project.check_toc(checkout)
    with (checkout / "_toc.yml").open("a") as file:
        file.write("  - file: book/part/a\n  - file: book/b\n")
    with pytest.raises(ValueError, match="book/part/a is in _toc.yml twice"):
        project.check_toc(checkout)
    (part / "a.md").rename(part / "a.ipynb")
    with pytest.raises(ValueError, match=r"book/part/a.ipynb is not a MyST page"):
        project.check_toc(checkout)
    (part / "a.ipynb").unlink()
    with pytest.raises(ValueError, match="book/part/a is in _toc.yml but has no source"):
        project.check_toc(checkout)


BINDER, COLAB = (
    "https://mybinder.org/v2",
    "https://colab.research.google.com/github/someone/fork/blob/gh-pages/_sources",
)
PAGE = "?urlpath=lab/tree/notebooks/book/a.ipynb"


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/someone/fork.git",
        "git@github.com:someone/fork.git",
        "ssh://git@github.com/someone/fork.git",
        "https://token@github.com/someone/fork/",
    ],
)
def test_launch_links_open_the_fork(address):
    remote = project.parse_remote(address, "feature/a#1")
    assert remote.url == "https://github.com/someone/fork"
    assert remote.binder("book/a") == f"{BINDER}/gh/someone/fork/feature%2Fa%231{PAGE}"
    assert remote.colab("book/a") == f"{COLAB}/book/a.ipynb"


def test_gitlab_has_binder_but_no_colab():
    remote = project.parse_remote("git@gitlab.com:group/sub/book.git", "main")
    assert remote.binder("book/a") == f"{BINDER}/gl/group%2Fsub%2Fbook/main{PAGE}"
    assert remote.colab("book/a") is None
    assert remote.report("book/a", "A page").startswith(f"{remote.url}/-/issues/new?issue%5Btitle%5D=Error%3A+A+page&")


@pytest.mark.parametrize("address", ["", "/srv/git/book.git", "https://example.org/a/b.git", "https://github.com/only"])
def test_no_link_is_made_for_a_remote_that_cannot_be_launched(address):
    assert project.parse_remote(address, "main") is None


@pytest.mark.parametrize(
    ("files", "home", "installs"),
    [
        ([], True, False),
        ([], False, True),
        (["lib/strings.py"], False, True),  # a folder of that name, in which the book's library is not
        (["lib/__init__.py", "lib/services/__init__.py"], False, True),
    ],
)
def test_hosted_cell_installs_the_library_where_it_is_missing(tmp_path, files, home, installs):
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    cell = project.Remote("github.com", "a/b", "main").install_cell()
    lines = ["    print('installs')" if line.lstrip().startswith("%pip") else line for line in cell.splitlines()]
    assert lines != cell.splitlines()
    paths = f"import sys; sys.path = [path for path in sys.path if path.startswith(({sys.base_prefix!r},))]\n"
    paths += f"sys.path.insert(0, {str(ROOT if home else tmp_path)!r})\n"
    command = [sys.executable, "-S", "-c", paths + "\n".join(lines)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("installs" in done.stdout) == installs


def test_remote_of_a_checkout_is_its_origin_at_what_is_checked_out(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert project.remote(tmp_path) is None, "there is no git"
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("remote", "add", "upstream", "https://github.com/origin/book.git")
    assert project.remote(tmp_path) is None, "only origin is this checkout's own"
    git("remote", "add", "origin", "git@github.com:someone/fork.git")
    assert project.remote(tmp_path) == project.Remote("github.com", "someone/fork", "main")
    git("checkout", "-q", "--detach")
    assert project.remote(tmp_path).branch == "HEAD"
    git("tag", "v1.0")
    assert project.remote(tmp_path).branch == "v1.0"
    git("checkout", "-q", "main")
    assert project.remote(tmp_path).branch == "main", "a branch goes before a tag"


def test_tests_run_with_as_many_threads_as_kernels():
    wanted = {name: value for name, value in project.KERNELS.items() if name.endswith("_NUM_THREADS")}
    assert len(wanted) == 4 and wanted.items() <= os.environ.items()


def test_the_lock_holds_what_is_asked_for_and_all_of_it_is_installed():
    direct, locked = pins("requirements.in"), pins("requirements.txt")
    assert direct.items() <= locked.items() and len(locked) > 2 * len(direct)
    assert {name: version(name).partition("+")[0] for name in locked} == locked
    assert locked["jupyter-book"].startswith("1."), "version 2 reads neither _config.yml nor _toc.yml"
    assert not [name for name in locked if re.match("nvidia|cuda|triton", name)], "an accelerator's are torch's own"
    config = yaml.safe_load(project.read(ROOT / "_config.yml"))
    modules = packages_distributions()
    for name in config["sphinx"]["config"]["extensions"]:
        packages = modules.get(name.split(".")[0], [name])  # some packages give their module another name
        assert name.startswith("tools.") or any(canonicalize_name(each) in locked for each in [name, *packages]), name


def test_lock_holds_for_the_stated_minimum():
    """The first Python that README and pyproject.toml promise is one that every locked package accepts."""
    minimum = STATED["requires-python"].removeprefix(">=")
    assert f"Python {minimum} or newer" in project.read(ROOT / "README.md")
    asked = {name: metadata(name).get("Requires-Python") or ">=3" for name in pins("requirements.txt")}
    assert {name: text for name, text in asked.items() if not SpecifierSet(text).contains(f"{minimum}.0")} == {}


def test_binder_installs_the_part_of_the_lock_that_a_reader_needs():
    """And no file of the checkout, so that Binder keeps the installation when only the text changes."""
    index, part, whole = "--extra-index-url ", pins("binder/requirements.txt"), pins("requirements.txt")
    options = [line for line in project.read(ROOT / "binder/requirements.txt").splitlines() if line.startswith("-")]
    assert len(options) == 1 and options[0].startswith(index) and options[0].endswith("/cpu")
    assert part.items() <= whole.items()
    extras, groups = STATED["optional-dependencies"], tomllib.loads(project.read(ROOT / "pyproject.toml"))
    asked = STATED["dependencies"] + extras["numba"] + extras["torch"] + groups["dependency-groups"]["launch"]
    assert {canonicalize_name(Requirement(line).name) for line in asked} <= part.keys()
    others = "playwright nbgrader pytest hypothesis ruff uv sphinx jupyter-book jupyter-cache sqlalchemy distributed"
    assert not {*others.split()} & part.keys() and {*others.split()} <= whole.keys()
    assert (ROOT / "binder" / "postBuild").stat().st_mode & 0o111


def test_version_is_the_same_wherever_a_reader_sees_it():
    """The citation, the page on citing, and the newest entry of the page on changes."""
    cited = yaml.safe_load(project.read(ROOT / "CITATION.cff"))
    assert cited["version"] == cited["preferred-citation"]["version"] == lib.__version__
    address = cited.get("repository-code")  # of the first repository, also in a fork of it
    assert address is None or project.parse_remote(address, "main").url == address
    assert f"Version {lib.__version__}}}" in project.read(ROOT / "book" / "citing.md")
    lines = project.read(ROOT / "book" / "changes.md").splitlines()
    newest = next(line for line in lines if line.startswith("## Version"))
    assert newest.startswith(f"## Version {lib.__version__} ")


def test_the_library_declares_what_it_imports():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "lib").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    outside = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"lib"}
    outside -= {"cycler", "matplotlib_inline"}  # which matplotlib and IPython bring along
    declared = {Requirement(line).name for line in STATED["dependencies"]}
    assert {canonicalize_name({"sklearn": "scikit-learn"}.get(name, name)) for name in outside} == declared
    asked = {name for path in (ROOT / "lib").rglob("*.py") for name in project.ASKED.findall(project.read(path))}
    extras = {name: [Requirement(line) for line in lines] for name, lines in STATED["optional-dependencies"].items()}
    assert asked - {"json"} == extras.keys() - {"book"}, "json is that of an example"
    assert all([need.name for need in extras[name]] == [name] for name in extras.keys() - {"book"})
    (book,) = extras["book"]
    assert (book.name, book.extras) == (STATED["name"], {*project.EXTRAS})


def test_a_page_asks_for_the_extras_that_its_cells_reach():
    def extras(*cells):
        cells = [nbformat.v4.new_code_cell(source) for source in cells]
        return project.extras(nbformat.v4.new_notebook(cells=cells))

    assert extras("import numpy", "from lib.foundations import gaussian") == ()
    assert extras("import numpy\nimport torch.nn as nn") == extras("from torch import nn") == ("torch",)
    assert extras("from lib.foundations import online", "from lib.representations import nets") == ("numba", "torch")
    assert extras("%matplotlib inline") == project.EXTRAS, "what cannot be read may reach anything"


@cache
def pages_without_extras():
    pages = {path: project.extras(project.read_notebook(ROOT, path)) for path in project.notebooks(ROOT)}
    return [path.relative_to(ROOT).as_posix() for path in pages if not pages[path] and path.parent != ROOT / "book"]


@pytest.mark.parametrize(
    "page",
    [
        "criticality/exact-power-laws",
        "fields/pinned-membrane",
        pytest.param("foundations/gaussian-averages", marks=pytest.mark.slow),
    ],
)
def test_fourteen_chapters_run_where_neither_numba_nor_torch_is(page):
    """These three do; the others, which reach neither, ran so when this was written."""
    assert len(pages_without_extras()) >= 14 and f"book/{page}.md" in pages_without_extras()
    code = f"from pathlib import Path; from tools.build import seeds; page = Path('book/{page}.md').resolve()"
    code += "\nprint(seeds.failures(page, 0), 'numba' in sys.modules, 'torch' in sys.modules)"
    assert without.run(code) == "[] False False\n"
