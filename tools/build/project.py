"""Facts about a checkout that the build, the Sphinx extensions and the tests share."""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

import yaml
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

from lib.services import presets, provenance

ROOT = Path(__file__).resolve().parents[2]
SAID = "ledger-words.json"  # beside the gathered ledger: its rows without numbers, for pages that show none
# What every kernel runs under, wherever the checkout lies.  With one thread notebooks run side by side and sums do not
# depend on the number of cores.
KERNELS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
KERNELS |= {"JUPYTER_PREFER_ENV_PATH": "1", "PHYSICS_OF_LEARNING_SITE": "1"}
KERNELS["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # another one, set for the machine, shows no figure
HOUR = 3600  # seconds: a limit that a dead process reaches, and no loaded machine


def read(path):
    """The text of a file; one that is not UTF-8 is named in the error, with the line where it stops being so."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise ValueError(
            f"{path} must be UTF-8 text, got the byte 0x{byte:02x} in line {line}: save the file as UTF-8"
        ) from None


def toc_pages(root):
    """Document names (no suffix) in the order of ``_toc.yml``."""

    def files(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("root", "file"):
                    yield value
                else:
                    yield from files(value)
        elif isinstance(node, list):
            for item in node:
                yield from files(item)

    return list(files(yaml.safe_load(read(root / "_toc.yml"))))


def book_sources(root):
    """Every page source under ``book/``, sorted; the problem sets are no pages, since they hold their solutions."""
    sources = [path for suffix in ("md", "ipynb", "rst") for path in (root / "book").rglob(f"*.{suffix}")]
    return sorted(path for path in sources if not {".ipynb_checkpoints", "assignments"} & set(path.parts))


def check_toc(root):
    """Raise ``ValueError`` unless ``_toc.yml`` and ``book/`` name the same pages, each once, all of them MyST."""
    sources = book_sources(root)
    listed, present = toc_pages(root), [path.relative_to(root).with_suffix("").as_posix() for path in sources]
    problems = [f"{page} is in book/ but not in _toc.yml" for page in sorted(set(present) - set(listed))]
    problems += [f"{page} is in _toc.yml but has no source" for page in sorted(set(listed) - set(present))]
    problems += [f"{page} is in _toc.yml twice" for page in sorted({p for p in listed if listed.count(p) > 1})]
    problems += [
        f"{path.relative_to(root)} is not a MyST page (.md): convert it with jupytext"
        for path in sources
        if path.suffix != ".md"
    ]
    if problems:
        raise ValueError("; ".join(problems))


def is_notebook(path):
    """True if a page source is a MyST notebook, that is, if the build executes it."""
    return path.suffix == ".md" and is_myst_markdown_notebook(read(path))


def notebooks(root):
    """Paths of the MyST notebooks of the book, in reading order."""
    paths = [(root / page).with_suffix(".md") for page in toc_pages(root)]
    return [path for path in paths if is_notebook(path)]


def read_notebook(root, path):
    """A MyST notebook as the site's parser reads it, so that both find the same entry of the execution cache."""
    return deepcopy(_parsed(read(path), read(root / "_config.yml"), path))


@cache
def _parsed(text, config, path):
    settings = MdParserConfig(enable_extensions=set(_configuration(config)["parse"]["myst_enable_extensions"]))
    return read_myst_markdown_notebook(text, config=settings, add_source_map=True, path=path)


@cache
def _configuration(text):
    return yaml.safe_load(text)


def cell_timeout(root):
    """Seconds that a cell may take; a preset of the sources' sizes has no limit."""
    return _configuration(read(root / "_config.yml"))["execute"]["timeout"] if presets.current() == "quick" else None


def page_name(root, path):
    """The document name of a page, as in "book/part/chapter"."""
    return path.relative_to(root).with_suffix("").as_posix()


def sum_of(root, places, *words):
    """A sum over files, over folders with all that they hold, and over words."""
    total = hashlib.sha256("\0".join(words).encode())
    for name in places:
        for file in sorted((root / name).rglob("*")) if (root / name).is_dir() else [root / name]:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return total.hexdigest()


def remove(path):
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kernel_environment(root):
    """What a kernel of this checkout runs under: :data:`KERNELS`, and places of its own.

    What a home holds (matplotlib's list of fonts, settings of IPython) may be of another environment, or anybody's.
    """
    own = {"MPLCONFIGDIR": f"{sys.prefix}/share/matplotlib", "IPYTHONDIR": f"{sys.prefix}/share/ipython"}
    return KERNELS | own | {"PYTHONPATH": str(root)}


EXTRAS = ("numba", "torch")  # of pyproject.toml; the third one is for sweeps on a cluster
ASKED = re.compile(r"""\bneeds\(["'](\w+)""")
IMPORTED = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)


def extras(notebook):
    """The :data:`EXTRAS` that the cells of a notebook import, or the modules of lib that they reach ask for."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    try:
        reached = provenance.reached([ast.parse(cell) for cell in cells])
    except SyntaxError:  # a cell that is not plain Python may reach anything
        return EXTRAS
    asked = {name for path in reached.values() for name in ASKED.findall(read(path))}
    return tuple(sorted((asked | {*IMPORTED.findall("\n".join(cells))}) & {*EXTRAS}))


LAUNCHED = "lab/tree/notebooks/"  # where a launched server shows the reader's notebooks
HOSTED = """# Only where the book's library is not installed, as on Colab.
import importlib.util

try:
    found = importlib.util.find_spec("lib.services.ledger") is not None
except ModuleNotFoundError:  # there is no lib, or another one
    found = False
if not found:
    %pip install -q "physics-of-learning{extras} @ git+{url}@{branch}\"
"""


@dataclass(frozen=True)
class Remote:
    """Where the checkout comes from: the web address of a hosted repository, and the branch or tag checked out."""

    host: str
    repository: str
    branch: str

    @property
    def url(self):
        return f"https://{self.host}/{self.repository}"

    def install_cell(self, extras=EXTRAS):
        """The first cell of a notebook that leaves this checkout: it installs ``lib`` where it is missing."""
        return HOSTED.format(extras=f"[{','.join(extras)}]" if extras else "", url=self.url, branch=self.branch)

    def binder(self, page):
        """The Binder link that opens the plain notebook of a page, which ``binder/postBuild`` writes."""
        service = {"github.com": "gh", "gitlab.com": "gl"}[self.host]
        name = self.repository if service == "gh" else self.repository.replace("/", "%2F")
        return f"https://mybinder.org/v2/{service}/{name}/{quote(self.branch, safe='')}?urlpath={LAUNCHED}{page}.ipynb"

    def colab(self, page):
        """The Colab link to the executed notebook on the published branch; None where Colab cannot read the host."""
        if self.host != "github.com":
            return None
        return f"https://colab.research.google.com/github/{self.repository}/blob/gh-pages/_sources/{page}.ipynb"

    def report(self, page, title):
        """The form for an error on a page, with the page filled in."""
        about, where = f"Error: {title}", f"{title} ({page})"
        if self.host == "github.com":  # the form is .github/ISSUE_TEMPLATE/error.yml, its first field is `page`
            return f"{self.url}/issues/new?" + urlencode({"template": "error.yml", "title": about, "page": where})
        asked = f"Page: {where}\n\nEquation, figure or sentence:\n\nWhat it should be:\n"
        return f"{self.url}/-/issues/new?" + urlencode({"issue[title]": about, "issue[description]": asked})


def parse_remote(address, branch):
    """A :class:`Remote` from a git address (https or ssh) of a host that the launch services know, else None."""
    match = re.fullmatch(
        r"(?:https://(?:[^@/]+@)?|git@|ssh://git@)(github\.com|gitlab\.com)[:/](.+?)(?:\.git)?/?", address.strip()
    )
    return Remote(match[1], match[2], branch) if match and re.fullmatch(r"[\w.-]+(/[\w.-]+)+", match[2]) else None


def _git(root, *arguments):
    """Standard output of a git command, or None where there is no git, no repository or no such setting."""
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def remote(root):
    """The checkout's ``origin`` as a :class:`Remote`, or None where there is none that a launch service could open."""
    address = _git(root, "remote", "get-url", "origin")
    if not address:
        return None
    # With no branch and no tag checked out, HEAD: the services read it as the repository's default branch.
    branch = (
        _git(root, "symbolic-ref", "--short", "HEAD") or _git(root, "describe", "--tags", "--exact-match") or "HEAD"
    )
    return parse_remote(address, branch)
