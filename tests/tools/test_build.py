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
    (root / "binder").mkdir()
    for name in ("_config.yml", "requirements.txt", "binder/requirements.txt", "book/references.bib"):
        shutil.copy(project.ROOT / name, root / name)
    (root / "lib" / "claims" / "part").mkdir(parents=True)
    (root / "lib" / "claims" / "sources.toml").write_text('[toy]\nname = "A toy"\n')
    (root / "lib" / "claims" / "part" / "page.toml").write_text(CLAIM)
    answers(root, 41)
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/page\n- file: book/bibliography\n"
    )
    (root / "book" / "index.md").write_text("# Start\n\n```{ledger-summary}\n```\n\n```{ledger-claims} page\n```\n")
    (root / "book" / "bibliography.md").write_text("# Bibliography\n\n```{bibliography}\n:all:\n```\n")
    write(root, PAGE)
    return root


def write(root, text, name="page"):
    (root / "book" / f"{name}.md").write_text(text)


def answers(root, value, before=""):
    (root / "lib" / "toy.py").write_text(f"import os\n\n\ndef answer():\n    {before}return {value}\n")


COMMAND = ["-m", "tools.build.book"]
WITHOUT_SITE = ["-c", "from tools.build import book; book.write_site = lambda root, workers: None; book.main()"]


def build(root, *expected, fails=False, site=True):
    """Run the real command, which must say what is expected; without the site, Sphinx alone is left out, which takes
    longer than all else together.
    """
    command = [sys.executable, *(COMMAND if site else WITHOUT_SITE), "--root", str(root)]
    options = {"cwd": root, "env": os.environ | {"PYTHONPATH": str(root)}, "capture_output": True, "text": True}
    done = subprocess.run(command, check=False, **options)
    said = done.stdout + done.stderr
    assert (done.returncode != 0) == fails and all(words in said for words in expected), said
    return said


def page(root, name="page"):
    return (root / "_build" / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")


def pages_of(root):
    html = root / "_build" / "html"
    return {path: path.read_bytes() for path in [*html.rglob("*.html"), html / "searchindex.js"]}


def test_a_small_book_lives(book):
    """One story, because each build takes seconds: build, rebuild, change the library, change prose, break things."""
    build(book, "executed book/page.md", "(not executed yet)", "results of the book: 1 holds")
    assert "the answer is 41" in page(book) and "41" in page(book, "index")
    assert get_cache(book / "_build" / ".jupyter_cache").list_project_records() == [], "Sphinx executed a page itself"

    written = pages_of(book)
    build(book, "No notebook to execute.")
    assert pages_of(book) == written, "written in part, it is as if written anew"

    answers(book, 43)
    build(book, "s (lib/toy.py changed)")
    assert "the answer is 43" in page(book) and "the answer is 41" not in page(book)
    assert ">43<" in page(book, "index").replace("43.0", "43")

    write(book, PAGE + "\nMore prose.\n")
    build(book, "Executed 0 notebooks")
    assert "More prose." in page(book) and "the answer is 43" in page(book) and "A page" in page(book, "bibliography")

    write(book, PAGE.replace("# A page", "# Another page"))
    build(book)
    assert "Another page" in page(book, "bibliography"), "its title stands in the navigation of the others"

    answers(book, 48)
    build(book, "a cell failed in", "toy/answer: measured 48.0, expected 42", fails=True)
    assert not (book / "_build" / "html").exists(), "the pages of the last good build would be stale"
    answers(book, 43, before="os._exit(1); ")
    build(book, "book/page.md:\nDeadKernelError", fails=True)

    answers(book, 43)
    write(book, PAGE + "\nSee {ref}`nowhere`.\n")
    for _ in range(2):  # the second fails as the first did
        build(book, "nowhere", fails=True)
    assert not (book / "_build" / "html").exists()

    write(book, PAGE + "\n:::{correction} toy/answer\n:::\n")
    build(book, "'toy/answer' is not a claim in lib/claims with", fails=True)

    write(book, PAGE)
    write(book, "# Stray\n", "stray")
    build(book, "book/stray is in book/ but not in _toc.yml", fails=True)


def test_an_interrupted_build_is_mended_by_the_next(book):
    write(book, PAGE)
    (book / "book" / "stray.md").unlink(missing_ok=True)
    answers(book, 43)
    build(book, site=False)
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
        build(book, "Executed 1 notebooks", site=False)


def test_printed_lines_that_follow_each_other_are_one_output():
    shown = {"output_type": "display_data", "data": {}, "metadata": {}}
    printed = ["out a", "out b", "err c", "out d", None, "out e", "out f"]
    outputs = [{"output_type": "stream", "name": one[:3], "text": one[4:]} if one else shown for one in printed]
    cells = [nbformat.v4.new_code_cell("", outputs=list(map(nbformat.from_dict, outputs)))]
    notebook = nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_markdown_cell("")])
    results.coalesce(notebook)
    assert [output.get("text") for output in notebook.cells[0].outputs] == ["ab", "c", "d", None, "ef"]


def test_a_second_build_at_the_same_time_is_refused(book):
    (book / "_build").mkdir(exist_ok=True)
    with (book / "_build" / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        build(book, "another build of this checkout is running", fails=True)


def test_a_failing_page_does_not_cost_the_others(book):
    """The first build after a change of the library, with a cell that fails: what was executed stays."""
    toc = (book / "_toc.yml").read_text()
    (book / "_toc.yml").write_text(toc + "- file: book/other\n")
    write(book, PAGE)
    answers(book, 44)
    other = FRONT + "# Another\n\n```{code-cell} ipython3\n" + "%s\n```\n"
    grumble = "import sys\nprint('grumble', file=sys.stderr)"
    complaint = "wrote to stderr, and a page has no place for it:\ngrumble"
    for cell, message in (("1 / 0", "ZeroDivisionError"), (grumble, complaint)):
        write(book, other % cell, "other")
        said = build(book, "book/other.md:\n", message, fails=True, site=False)
    assert "executed book/page.md" not in said, "the other page was executed by the first of these builds"
    write(book, other % "print('well')", "other")
    build(book, "Executed 1 notebooks", site=False)
    (book / "book" / "other.md").unlink()
    (book / "_toc.yml").write_text(toc)


@pytest.mark.parametrize("end, ignored", [(signal.SIGKILL, False), (signal.SIGINT, True), (signal.SIGTERM, True)])
def test_a_killed_build_leaves_nothing_behind(book, end, ignored):
    """`ignored`: started as scripts start what runs in the background, deaf to Ctrl-C.

    Then the signal goes to the whole group.
    """
    write(book, PAGE.replace("print(", "import time; time.sleep(10_000)\nprint("))
    command = [sys.executable, *COMMAND, "--root", str(book)]
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
    (os.killpg if ignored else os.kill)(builder.pid, end)
    _, said = builder.communicate()
    if end != signal.SIGKILL:
        assert "interrupted; run the same command to go on" in said and "CancelledError" not in said
    wait_for(lambda: not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE])
    write(book, PAGE)
    build(book, site=False)


def wait_for(condition):
    deadline = time.monotonic() + project.HOUR
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_slips_in_the_configuration_end_in_a_sentence(book):
    toc = (book / "_toc.yml").read_text()
    for text in ("format: [", None):
        (book / "_toc.yml").unlink() if text is None else (book / "_toc.yml").write_text(text)
        said = build(book, fails=True)
        assert said.startswith("The book was not built: ") and "Traceback" not in said
    (book / "_toc.yml").write_text(toc)


def test_another_checkouts_lib_is_refused(tmp_path):
    with pytest.raises(results.BuildFailed, match="lib is imported from"):
        build_book.build(tmp_path, 1)
