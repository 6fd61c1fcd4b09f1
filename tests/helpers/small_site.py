"""A site of a few pages, written by Sphinx with the book's own extensions, for tests of single extensions."""

import os
import subprocess
import sys

import yaml
from bs4 import BeautifulSoup

from tools.build import book, project

CONFIG = yaml.safe_load(project.read(project.ROOT / "_config.yml"))["sphinx"]["config"]

ROW = {
    "id": "fdt/a",
    "source": "A source",
    "citation": None,
    "file": None,
    "locator": "eq. (1)",
    "statement": "One is one.",
    "expected": 1.0,
    "measured": 1.0123,
    "error": 0.004,
    "tolerance": "0.1",
    "verdict": "reproduced",
    "chapter": "book/fluctuations/a",
    "anchor": "ledger-fdt-a",
    "place": 0,
    "printed": None,
    "right": None,
    "kind": None,
    "cause": None,
    "reason": None,
    "cell": "check()",
}


def write(root, pages, rows=(), remote=None):
    """Write the sources: ``pages`` maps document names to text, the first page is the root; ``remote`` becomes git's
    origin.
    """
    for name, text in pages.items():
        path = root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "_build").mkdir(exist_ok=True)
    book.write_ledger(root / "_build" / "ledger.json", [ROW | row for row in rows])
    subprocess.run(["git", "init", "-q", root], check=True)
    if remote is not None:
        subprocess.run(["git", "-C", root, "remote", "add", "origin", remote], check=True)


def build(root, *extensions, first):
    """Run Sphinx strictly; returns the exit status and what it printed."""
    settings = {
        "extensions": ["myst_parser", *extensions],
        "root_doc": first,
        "project": "A Book",
        "html_theme": "sphinx_book_theme",
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "exclude_patterns": ["_build"],
    }
    settings |= {name: value for name, value in CONFIG.items() if name.startswith(("napoleon", "nitpick"))}
    if "sphinxext.opengraph" in extensions:
        settings |= {"ogp_social_cards": {"enable": False}, "ogp_enable_meta_description": False}
        settings |= {"notfound_template": "404.html", "templates_path": [str(project.ROOT / "book" / "_templates")]}
    (root / "conf.py").write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "--keep-going", root, root / "_build" / "html"]
    environment = os.environ | {"PYTHONPATH": str(project.ROOT)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def read(root, name):
    return BeautifulSoup((root / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
