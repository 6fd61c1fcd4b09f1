"""Write the site with Sphinx: pages that changed are read and written again, and no site with a warning is kept.

Which pages these are says ``tools/sphinx_ext/incremental.py``.  All of them are read and written anew when what they
are made with changed (the tools, the configuration, the references, the versions, the list of pages), and when the
last site had a warning, which Sphinx does not repeat for a page that it does not read.
"""

import argparse
import sys
from pathlib import Path

from jupyter_book.sphinx import build_sphinx

from tools.build import project

GROUND = "ground.txt"  # beside what was read: the sum of what it was read with
ASIDE = ".html"  # the last site, while notebooks are executed
WITH = ["_config.yml", "_toc.yml", "requirements.txt", "tools", "book/assignments"]
WITH += ["book/references.bib", "book/_static", "book/_templates"]


def ground(root):
    """A sum over everything that all pages are made with, and the names of the library's modules."""
    modules = sorted(path.relative_to(root).as_posix() for path in (root / "lib").rglob("*.py"))
    return project.sum_of(root, WITH, sys.version, *modules)


def put_aside(output):
    """Take the last site away, so that it does not outlive a build that ends early; :func:`write` goes on from it."""
    if (output / "html").exists():
        project.remove(output / ASIDE)
        (output / "html").rename(output / ASIDE)


def write(root, workers):
    """Write the site of a built checkout; whether it has no fault.  Sphinx reports its warnings on stderr."""
    output = root / "_build"
    read, site = output / ".doctrees", output / "html"
    now = ground(root)
    if (output / ASIDE).exists():
        project.remove(site)
        (output / ASIDE).rename(site)
    if not (read / GROUND).exists() or (read / GROUND).read_text() != now or not site.exists():
        project.remove(read)
        project.remove(site)
    (read / GROUND).unlink(missing_ok=True)  # until this site is whole
    project.remove(site / "_static")  # or pages name files by sums that they had no time to take in the first build
    fault = build_sphinx(
        root,
        site,
        path_config=root / "_config.yml",
        noconfig=True,
        confoverrides={"external_toc_path": str(root / "_toc.yml"), "latex_individualpages": False, "nitpicky": True},
        doctreedir=read,
        warningiserror=True,
        keep_going=True,
        quiet=True,
        jobs=workers,
    )
    if fault:
        project.remove(site)
    else:
        (read / GROUND).write_text(now)
    return not fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=project.ROOT, help="the checkout (default: this one)")
    parser.add_argument("--workers", type=int, default=project.cores(), help="pages read and written side by side")
    options = parser.parse_args()
    sys.exit(not write(options.root.resolve(), options.workers))


if __name__ == "__main__":
    main()
