"""The build of a small book, start to end: it is strict, it is never stale, and it does no work twice."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
from jupyter_cache import get_cache

from tools.build import book as build_book
from tools.build import project, results

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
"""
PAGE = (
    FRONT
    + """# A page

```{code-cell} ipython3
from lib.services import ledger
from lib.toy import answer

print("the answer is", answer())
ledger.check("toy/answer", answer())
```
"""
)
CLAIM = """
[[claim]]
id = "toy/answer"
locator = "eq. (1)"
statement = "The answer is near forty-two."
value = 42
atol = 5
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A checkout with the real tools and configuration, one notebook, and a library of one function."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("lib", "tools", "book/_static", "book/_templates"):
        shutil.copytree(project.ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "claims"))
    for name in ("_config.yml", "requirements.txt", "book/references.bib"):
        shutil.copy(project.ROOT / name, root / name)
    (root / "lib" / "claims" / "part").mkdir(parents=True)
    (root / "lib" / "claims" / "sources.toml").write_text('[toy]\nname = "A toy"\n')
    (root / "lib" / "claims" / "part" / "page.toml").write_text(CLAIM)
    (root / "lib" / "toy.py").write_text("def answer():\n    return 41\n")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/page\n- file: book/bibliography\n"
    )
    (root / "book" / "index.md").write_text("# Start\n\n```{ledger-summary}\n```\n\n```{ledger-claims} page\n```\n")
    (root / "book" / "bibliography.md").write_text("# Bibliography\n\n```{bibliography}\n:all:\n```\n")
    (root / "book" / "page.md").write_text(PAGE)
    return root


SHOWN = {"output_type": "display_data", "data": {}, "metadata": {}}
WITHOUT_SITE = "from tools.build import book; book.write_site = lambda root, workers: None; book.main()"


def build(root, *, site=True):
    """Run the real command; without the site, Sphinx alone is left out, which takes longer than all else together."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, *(["-m", "tools.build.book"] if site else ["-c", WITHOUT_SITE]), "--root", str(root)]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def page(root, name="page"):
    return (root / "_build" / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")


def pages_of(root):
    html = root / "_build" / "html"
    return sorted([*html.rglob("*.html"), html / "searchindex.js"])


def test_a_small_book_lives(book):
    """One story, because each build takes seconds: build, rebuild, change the library, change prose, break things."""
    first = build(book)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "executed book/page.md" in first.stdout and "(not executed yet)" in first.stdout
    assert "results of the book: 1 holds" in first.stdout
    assert "the answer is 41" in page(book) and "41" in page(book, "index")
    assert get_cache(book / "_build" / ".jupyter_cache").list_project_records() == [], "Sphinx executed a page itself"

    written = {path: path.read_bytes() for path in pages_of(book)}
    again = build(book)
    assert again.returncode == 0 and "No notebook to execute." in again.stdout, again.stderr
    assert {path: path.read_bytes() for path in pages_of(book)} == written, "written in part, it is as if written anew"

    (book / "lib" / "toy.py").write_text("def answer():\n    return 43\n")
    changed = build(book)
    assert changed.returncode == 0, changed.stdout + changed.stderr
    assert "s (lib/toy.py changed)" in changed.stdout
    assert "the answer is 43" in page(book) and "the answer is 41" not in page(book)
    assert ">43<" in page(book, "index").replace("43.0", "43")

    (book / "book" / "page.md").write_text(PAGE + "\nMore prose.\n")
    prose = build(book)
    assert prose.returncode == 0 and "Executed 0 notebooks" in prose.stdout
    assert "More prose." in page(book) and "the answer is 43" in page(book)
    assert "A page" in page(book, "bibliography")

    (book / "book" / "page.md").write_text(PAGE.replace("# A page", "# Another page") + "\nMore prose.\n")
    assert build(book).returncode == 0
    assert "Another page" in page(book, "bibliography"), "its title stands in the navigation of the others"

    (book / "lib" / "toy.py").write_text("def answer():\n    return 48\n")
    failing = build(book)
    assert failing.returncode != 0
    assert "a cell failed in" in failing.stderr and "toy/answer: measured 48.0, expected 42" in failing.stderr
    assert not (book / "_build" / "html").exists(), "the pages of the last good build would be stale"

    (book / "lib" / "toy.py").write_text("import os\n\n\ndef answer():\n    os._exit(1)\n")
    died = build(book)
    assert died.returncode != 0 and "book/page.md:\nDeadKernelError" in died.stderr

    (book / "lib" / "toy.py").write_text("def answer():\n    return 43\n")
    (book / "book" / "page.md").write_text(PAGE + "\nSee {ref}`nowhere`.\n")
    dangling = build(book)
    assert dangling.returncode != 0 and "nowhere" in dangling.stderr + dangling.stdout
    still = build(book)
    assert still.returncode != 0 and "nowhere" in still.stderr + still.stdout, "the second fails as the first did"
    assert not (book / "_build" / "html").exists()

    (book / "book" / "page.md").write_text(PAGE + "\n:::{correction} toy/answer\n:::\n")
    uncorrected = build(book)
    said = uncorrected.stderr + uncorrected.stdout
    assert uncorrected.returncode != 0 and "'toy/answer' is not a claim in lib/claims with" in said

    (book / "book" / "page.md").write_text(PAGE)
    (book / "book" / "stray.md").write_text("# Stray\n")
    stray = build(book)
    assert stray.returncode != 0 and "book/stray is in book/ but not in _toc.yml" in stray.stderr


def test_an_interrupted_build_is_mended_by_the_next(book):
    (book / "book" / "page.md").write_text(PAGE)
    (book / "book" / "stray.md").unlink(missing_ok=True)
    (book / "lib" / "toy.py").write_text("def answer():\n    return 43\n")
    assert build(book, site=False).returncode == 0
    (kept,) = (book / "_build" / ".jupyter_cache").rglob("base.ipynb")
    without_outputs = json.loads(kept.read_text())
    for cell in without_outputs["cells"]:
        cell.pop("outputs", None)
    prints = book / "_build" / "fingerprints.json"
    for damage in (
        lambda: kept.write_text("{"),
        kept.unlink,
        lambda: kept.write_text(json.dumps(without_outputs)),
        lambda: prints.write_bytes(b"\xff"),
        lambda: prints.write_text("[]"),
        lambda: prints.write_text('{"book/page.md": 3}'),
    ):
        (kept,) = (book / "_build" / ".jupyter_cache").rglob("base.ipynb")
        damage()
        mended = build(book, site=False)
        assert mended.returncode == 0 and "Executed 1 notebooks" in mended.stdout, mended.stdout + mended.stderr


def test_printed_lines_that_follow_each_other_are_one_output():
    printed = ["out a", "out b", "err c", "out d", None, "out e", "out f"]
    outputs = [{"output_type": "stream", "name": one[:3], "text": one[4:]} if one else SHOWN for one in printed]
    cells = [nbformat.v4.new_code_cell("", outputs=list(map(nbformat.from_dict, outputs)))]
    notebook = nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_markdown_cell("")])
    results.coalesce(notebook)
    assert [output.get("text") for output in notebook.cells[0].outputs] == ["ab", "c", "d", None, "ef"]


def test_a_second_build_at_the_same_time_is_refused(book):
    (book / "_build").mkdir(exist_ok=True)
    with (book / "_build" / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        second = build(book)
    assert second.returncode != 0 and "another build of this checkout is running" in second.stderr


def test_a_failing_page_does_not_cost_the_others(book):
    """The first build after a change of the library, with a cell that fails: what was executed stays."""
    toc = (book / "_toc.yml").read_text()
    (book / "_toc.yml").write_text(toc + "- file: book/other\n")
    (book / "book" / "page.md").write_text(PAGE)
    (book / "lib" / "toy.py").write_text("def answer():\n    return 44\n")
    other = FRONT + "# Another\n\n```{code-cell} ipython3\n" + "%s\n```\n"
    for cell, message in (
        ("1 / 0", "ZeroDivisionError"),
        ("import sys\nprint('grumble', file=sys.stderr)", "wrote to stderr, and a page has no place for it:\ngrumble"),
    ):
        (book / "book" / "other.md").write_text(other % cell)
        failing = build(book, site=False)
        assert failing.returncode != 0 and "book/other.md:\n" in failing.stderr and message in failing.stderr
    assert "executed book/page.md" not in failing.stdout, "the other page was executed by the first of these builds"
    (book / "book" / "other.md").write_text(other % "print('well')")
    mended = build(book, site=False)
    assert mended.returncode == 0 and "Executed 1 notebooks" in mended.stdout, mended.stdout + mended.stderr
    (book / "book" / "other.md").unlink()
    (book / "_toc.yml").write_text(toc)


@pytest.mark.parametrize("end, ignored", [(signal.SIGKILL, False), (signal.SIGINT, True), (signal.SIGTERM, True)])
def test_a_killed_build_leaves_nothing_behind(book, end, ignored):
    """`ignored`: started as scripts start what runs in the background, deaf to Ctrl-C.

    Then the signal goes to the whole group.
    """
    (book / "book" / "page.md").write_text(PAGE.replace("print(", "import time; time.sleep(10_000)\nprint("))
    command = [sys.executable, "-m", "tools.build.book", "--root", str(book)]
    builder = subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command] if ignored else command,
        cwd=book,
        env=os.environ | {"PYTHONPATH": str(book)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    process = psutil.Process(builder.pid)
    wait_for(lambda: len(process.children(recursive=True)) >= 3)  # two workers and a kernel
    below = process.children(recursive=True)
    if ignored:
        os.killpg(builder.pid, end)
    else:
        builder.send_signal(end)
    _, said = builder.communicate()
    if end != signal.SIGKILL:
        assert "interrupted; run the same command to go on" in said and "CancelledError" not in said
    wait_for(lambda: not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE])
    (book / "book" / "page.md").write_text(PAGE)
    again = build(book, site=False)
    assert again.returncode == 0, again.stdout + again.stderr


def wait_for(condition):
    deadline = time.monotonic() + project.HOUR
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_slips_in_the_configuration_end_in_a_sentence(book):
    toc = (book / "_toc.yml").read_text()
    for text in ("format: [", None):
        (book / "_toc.yml").unlink() if text is None else (book / "_toc.yml").write_text(text)
        done = build(book)
        assert done.returncode != 0 and done.stderr.startswith("The book was not built: "), done.stderr
        assert "Traceback" not in done.stderr
    (book / "_toc.yml").write_text(toc)


def test_another_checkouts_lib_is_refused(tmp_path):
    with pytest.raises(results.BuildFailed, match="lib is imported from"):
        build_book.build(tmp_path, 1)
