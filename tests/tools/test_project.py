"""Facts about the checkout: pages against the table of contents, fingerprints, launch links, the lock of versions."""

import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, packages_distributions, version

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import lib
from tools.build import dependencies, lock, project

REQUIREMENTS = (project.ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_the_books_pages_and_its_toc_agree():
    project.check_toc(project.ROOT)


@pytest.mark.parametrize("name", ["_toc.yml", "book/part/a.md"])
def test_a_file_that_is_not_utf_8_is_named_with_its_line(checkout, name):
    path = checkout / name
    path.write_bytes(path.read_bytes() + "# Umlaut: ü\n".encode("latin-1"))
    line = path.read_bytes().count(b"\n")
    with pytest.raises(ValueError, match=f"{name} must be UTF-8 text, got the byte 0xfc in line {line}: save"):
        project.notebooks(checkout)
    with pytest.raises(ValueError, match=f"{name} must be UTF-8 text"):
        dependencies.chapters(checkout)


def test_page_outside_the_toc_is_found(checkout):
    project.check_toc(checkout)
    (checkout / "book" / "b.md").write_text("# B\n")
    with pytest.raises(ValueError, match="book/b is in book/ but not in _toc.yml"):
        project.check_toc(checkout)


def test_toc_entry_without_a_page_is_found(checkout):
    (checkout / "book" / "part" / "a.md").unlink()
    with pytest.raises(ValueError, match="book/part/a is in _toc.yml but has no source"):
        project.check_toc(checkout)


def test_page_that_is_not_myst_is_found(checkout):
    (checkout / "book" / "part" / "a.md").rename(checkout / "book" / "part" / "a.ipynb")
    with pytest.raises(ValueError, match=r"book/part/a.ipynb is not a MyST page"):
        project.check_toc(checkout)


def test_page_listed_twice_is_found(checkout):
    with (checkout / "_toc.yml").open("a") as file:
        file.write("  - file: book/part/a\n")
    with pytest.raises(ValueError, match="book/part/a is in _toc.yml twice"):
        project.check_toc(checkout)


def test_notebooks_are_told_from_pages():
    names = [path.stem for path in project.notebooks(project.ROOT)]
    assert "online-learning" in names and "ledger" not in names


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/someone/fork.git",
        "https://github.com/someone/fork",
        "git@github.com:someone/fork.git",
        "ssh://git@github.com/someone/fork.git",
        "https://token@github.com/someone/fork/",
    ],
)
def test_launch_links_open_the_fork(address):
    remote = project.parse_remote(address, "draft")
    assert remote.url == "https://github.com/someone/fork"
    assert (
        remote.binder("book/a")
        == "https://mybinder.org/v2/gh/someone/fork/draft?urlpath=lab/tree/notebooks/book/a.ipynb"
    )
    assert (
        remote.colab("book/a")
        == "https://colab.research.google.com/github/someone/fork/blob/gh-pages/_sources/book/a.ipynb"
    )


def test_a_slash_in_a_branch_is_no_part_of_binders_address():
    remote = project.parse_remote("https://github.com/someone/fork", "feature/a#1")
    assert (
        remote.binder("book/a")
        == "https://mybinder.org/v2/gh/someone/fork/feature%2Fa%231?urlpath=lab/tree/notebooks/book/a.ipynb"
    )
    assert (
        remote.colab("book/a")
        == "https://colab.research.google.com/github/someone/fork/blob/gh-pages/_sources/book/a.ipynb"
    )


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
    cell = project.Remote("github.com", "a/b", "main").install_cell
    lines = ["    print('installs')" if line.lstrip().startswith("%pip") else line for line in cell.splitlines()]
    assert lines != cell.splitlines()
    paths = f"import sys; sys.path = [path for path in sys.path if path.startswith(({sys.base_prefix!r},))]\n"
    paths += f"sys.path.insert(0, {str(project.ROOT if home else tmp_path)!r})\n"
    command = [sys.executable, "-S", "-c", paths + "\n".join(lines)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("installs" in done.stdout) == installs


@pytest.fixture
def clone(tmp_path):
    """A repository of one commit on the branch ``main``, and a function that runs git in it."""

    def git(*arguments):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    return tmp_path, git


def test_remote_of_a_checkout_is_its_origin_at_what_is_checked_out(clone):
    root, git = clone
    assert project.remote(root) is None
    git("remote", "add", "upstream", "https://github.com/origin/book.git")
    assert project.remote(root) is None, "only origin is this checkout's own"
    git("remote", "add", "origin", "git@github.com:someone/fork.git")
    assert project.remote(root) == project.Remote("github.com", "someone/fork", "main")
    git("checkout", "-q", "-b", "draft/second")
    assert project.remote(root).branch == "draft/second"
    git("checkout", "-q", "--detach")
    assert project.remote(root).branch == "HEAD"
    git("tag", "v1.0")
    assert project.remote(root).branch == "v1.0"
    git("checkout", "-q", "main")
    assert project.remote(root).branch == "main", "a branch goes before a tag"


def test_gitlab_has_binder_but_no_colab():
    remote = project.parse_remote("git@gitlab.com:group/sub/book.git", "main")
    assert (
        remote.binder("book/a")
        == "https://mybinder.org/v2/gl/group%2Fsub%2Fbook/main?urlpath=lab/tree/notebooks/book/a.ipynb"
    )
    assert remote.colab("book/a") is None


@pytest.mark.parametrize(
    "address", ["", "/srv/git/book.git", "https://example.org/a/b.git", "https://github.com/only", "../book"]
)
def test_no_link_is_made_for_a_remote_that_cannot_be_launched(address):
    assert project.parse_remote(address, "main") is None


def test_remote_of_a_folder_without_git(tmp_path):
    assert project.remote(tmp_path) is None


def test_tests_run_with_as_many_threads_as_kernels():
    wanted = {
        name: value for name, value in project.kernel_environment(project.ROOT).items() if name.endswith("_NUM_THREADS")
    }
    assert len(wanted) == 4 and wanted.items() <= os.environ.items()


def test_environment_is_the_lock():
    direct, indirect = lock.split(REQUIREMENTS)
    for name, wanted in (direct | indirect).items():
        assert version(name).partition("+")[0] == wanted, name


def test_lock_is_complete():
    direct, indirect = lock.split(REQUIREMENTS)
    needed, held = set(lock.closure(direct)), set(direct) | set(indirect)
    assert needed <= held
    if sys.version_info[:2] == (3, 11) and sys.platform == "linux":  # where the lock is made; others may need less
        assert needed == held


def test_lock_holds_for_the_stated_minimum():
    """The first Python that README and pyproject.toml promise (3.11.0 reads ``>=3.11``) is one that every locked
    package accepts.
    """
    stated = tomllib.loads((project.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    minimum = stated.removeprefix(">=")
    assert f"Python {minimum} or newer" in (project.ROOT / "README.md").read_text(encoding="utf-8")
    direct, indirect = lock.split(REQUIREMENTS)
    asked = {name: metadata(name).get("Requires-Python") or ">=3" for name in direct | indirect}
    refused = {name: text for name, text in asked.items() if not SpecifierSet(text).contains(f"{minimum}.0")}
    assert not refused, f"these locked packages ask for a later Python than {minimum}.0"


def test_core_packages_are_direct_and_the_major_version_of_jupyter_book_is_1():
    direct, _ = lock.split(REQUIREMENTS)
    assert {"jupyter-book", "numpy", "scipy", "torch", "matplotlib", "sympy", "nbval"} <= set(direct)
    assert direct["jupyter-book"].startswith("1.")


def test_binder_installs_the_same_lock():
    binder = project.ROOT / "binder"
    lines = [line for line in (binder / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    index, lock_line = lines
    assert index.startswith("--extra-index-url ") and index.endswith("/cpu")
    assert (binder / lock_line.removeprefix("-r ")).resolve() == project.ROOT / "requirements.txt"
    assert "python -m tools.release.reader\n" in (binder / "postBuild").read_text()
    assert (binder / "postBuild").stat().st_mode & 0o111


def test_every_extension_in_the_configuration_is_locked():
    config = yaml.safe_load((project.ROOT / "_config.yml").read_text())
    direct, indirect = lock.split(REQUIREMENTS)
    modules = packages_distributions()
    for name in config["sphinx"]["config"]["extensions"]:
        package = modules.get(name.split(".")[0], [name])  # some packages give their module another name
        assert name.startswith("tools.") or any(
            canonicalize_name(each) in direct | indirect for each in [name, *package]
        ), name


def test_version_is_the_same_wherever_a_reader_sees_it():
    """The citation, the page on citing, and the newest entry of the page on changes."""
    citation = yaml.safe_load((project.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (project.ROOT / "book" / "changes.md").read_text(encoding="utf-8")
    assert citation["version"] == lib.__version__
    assert f"Version {lib.__version__}}}" in (project.ROOT / "book" / "citing.md").read_text(encoding="utf-8")
    newest = next(line for line in changes.splitlines() if line.startswith("## Version"))
    assert newest.startswith(f"## Version {lib.__version__} ")


def test_pin_lines_are_read():
    text = "# a comment\nA_b==1.0  # why\n\nc==2\nd==3; python_version < '3'\n"
    assert lock.pins(text) == {"a-b": "1.0", "c": "2"}
    with pytest.raises(ValueError, match="must pin every version"):
        lock.pins("a>=1")


def test_the_library_declares_what_it_imports():
    stated = tomllib.loads((project.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    declared = {Requirement(line).name for line in stated}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (project.ROOT / "lib").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    outside = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"lib"}
    brought_along = {"cycler", "matplotlib_inline"}  # by matplotlib and IPython
    assert {
        canonicalize_name({"sklearn": "scikit-learn"}.get(name, name)) for name in outside - brought_along
    } == declared
