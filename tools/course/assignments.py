"""Make the course from the problem sets: ``python -m tools.course.assignments`` (or ``make assignments``).

One MyST notebook a set, ``book/assignments/<name>.md``, holds text, solutions, tests and a wrong answer for each
problem.  From it come

- ``source/<name>/<name>.ipynb`` in the course folder, nbgrader's own format, with solutions and hidden tests: the
  instructor's;
- ``release/<name>/<name>.ipynb``, cut from it by nbgrader: the student edition;
- ``nbgrader_config.py`` and ``guarded_kernel.py``, the settings of the course and the kernel that grades, where there
  are none yet.

A cell of a set that is not plain text or given code says what it is in its metadata, ``problem: {kind, id, points}``.
Kinds: ``answer`` (code with one solution region), ``test`` (code, with a hidden region or none), ``essay`` (text,
marked by a human), and ``wrong`` (a plausible wrong answer, which ``replaces`` an answer and ``loses`` tests; it leaves
this repository in no edition).
"""

import argparse
import ast
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import jupytext
import nbformat
import yaml

from tools.build import project

KINDS = ("answer", "test", "essay", "wrong")
SOLUTION = re.compile(r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION$", re.S | re.M)
SETTINGS = ("guarded_kernel.py", "nbgrader_config.py")  # what a course takes along from here
MADE_FROM = ["book/assignments", "tools/course", "tools/build/project.py", "requirements.txt"]  # the student editions
PLAIN = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}  # nbgrader's metadata
PARTS = ("foundations", "fluctuations", "scaling", "representations", "criticality", "fields", "synthesis")


class AssignmentError(Exception):
    """A problem set or a course cannot be made; the message says what to mend."""


def folder(root):
    return root / "book" / "assignments"


def names(root):
    """The problem sets, in the order of the book's parts; others follow by name."""
    found = sorted(path.stem for path in folder(root).glob("*.md"))
    return sorted(found, key=lambda name: PARTS.index(name) if name in PARTS else len(PARTS))


def read(root, name):
    """The source of a problem set as a notebook, checked; each special cell has its ``problem`` in the metadata."""
    path = folder(root) / f"{name}.md"
    if not path.is_file():
        raise AssignmentError(f"there is no problem set {name!r}; there are: {', '.join(names(root)) or 'none'}")
    notebook = jupytext.read(path)
    problems = list(_mistakes(notebook))
    if problems:
        raise AssignmentError(f"{path.relative_to(root)}: " + "; ".join(problems))
    return notebook


def kind(cell):
    """What a cell is: one of KINDS, or None for text and given code."""
    return cell.metadata.get("problem", {}).get("kind")


def of_kind(notebook, wanted):
    return [cell for cell in notebook.cells if kind(cell) == wanted]


def problems(notebook, wanted):
    """What the cells of a kind say of themselves."""
    return [cell.metadata["problem"] for cell in of_kind(notebook, wanted)]


def points(notebook):
    """Points of a set: those of the tests, and those that a human gives."""
    return tuple(sum(one["points"] for one in problems(notebook, kind)) for kind in ("test", "essay"))


def _mistakes(notebook):
    """What is wrong with a problem set, in words."""
    about, seen = notebook.metadata.get("assignment", {}), set()
    missing = [key for key in ("title", "part", "chapters", "minutes") if key not in about]
    yield from (f"the front matter lacks assignment.{key}" for key in missing)
    for cell in notebook.cells:
        problem = cell.metadata.get("problem")
        if problem is None:
            if "### BEGIN" in cell.source:
                yield f"a cell without `problem` has a region: {cell.source[:40]!r}"
            continue
        name, what, points = problem.get("id") or problem.get("replaces"), problem.get("kind"), problem.get("points")
        if what not in KINDS or not name:
            yield f"`problem` needs a kind of {', '.join(KINDS)} and an id, got {dict(problem)}"
            continue
        if (cell.cell_type == "markdown") != (what == "essay"):
            yield f"{name}: an essay is text and everything else is code"
        if what != "wrong" and name in seen:
            yield f"{name}: used twice"
        seen.add(name)
        if what in ("test", "essay") and not (isinstance(points, int) and points > 0):
            yield f"{name}: points must be a whole number above zero"
        if len(SOLUTION.findall(cell.source)) != (what == "answer"):
            yield f"{name}: an answer has one region from ### BEGIN SOLUTION to ### END SOLUTION, no other cell has one"
        if what == "test" and cell.cell_type == "code" and isinstance(ast.parse(cell.source).body[-1], ast.Expr):
            yield f"{name}: a test that ends in a bare expression would be read as a grade; end it in an assert"
    answers, tests = ({one["id"] for one in problems(notebook, kind)} for kind in ("answer", "test"))
    replaced = [one["replaces"] for one in problems(notebook, "wrong")]
    if sorted(replaced) != sorted(answers):
        yield f"every answer needs one wrong answer: {sorted(set(replaced) ^ answers) or 'one has two'}"
    for one in problems(notebook, "wrong"):
        if not one.get("loses") or not set(one["loses"]) <= tests:
            yield f"the wrong answer to {one['replaces']} must lose tests of the set, got {one.get('loses')}"


def instructor_edition(root, name):
    """nbgrader's source notebook of a set: solutions, hidden tests, points; text as it is, given code locked."""
    notebook = read(root, name)
    notebook.cells = [cell for cell in notebook.cells if kind(cell) != "wrong"]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{name}-{number}"
        problem = cell.metadata.pop("problem", None)
        if problem is not None:
            graded, test = problem["kind"] != "answer", problem["kind"] == "test"
            points = {"points": problem["points"]} if graded else {}
            about = {"grade_id": problem["id"], "grade": graded, "solution": not test, "locked": test, **points}
            cell.metadata["nbgrader"] = PLAIN | about
        elif cell.cell_type == "code":
            cell.metadata["nbgrader"] = PLAIN | {"grade_id": f"given-{number}", "locked": True}
    remote = project.remote(root)
    if remote is not None:
        about = {"id": f"{name}-hosted", "metadata": {"tags": ["hosted"]}}
        notebook.cells.insert(0, nbformat.v4.new_code_cell(remote.install_cell(), **about))
    notebook.metadata.pop("jupytext", None)
    return notebook


def make_course(root, course, chosen):
    """Write the instructor's and the student edition of the chosen sets into a course folder; returns the student
    editions' paths.
    """
    editions = {name: instructor_edition(root, name) for name in chosen}
    try:
        from nbgrader.apps import NbGraderAPI
    except ImportError:
        raise AssignmentError("nbgrader is not installed; `make assignments` installs it") from None
    from traitlets.config import Config

    course.mkdir(parents=True, exist_ok=True)
    for settings in (root / "tools" / "course" / name for name in SETTINGS):
        if not (course / settings.name).exists():
            shutil.copyfile(settings, course / settings.name)
    api = NbGraderAPI(config=Config({"CourseDirectory": {"root": str(course)}}))
    made = []
    for name, notebook in editions.items():
        source = course / "source" / name / f"{name}.ipynb"
        source.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, source)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with patch.dict(os.environ, PATH=path):  # nbgrader calls alembic by its name when it makes the gradebook
            result = api.generate_assignment(name)
        if not result["success"]:
            raise AssignmentError(f"nbgrader could not make {name}:\n{result.get('error', '')}{result['log']}")
        made.append(course / "release" / name / f"{name}.ipynb")
    return made


def student_editions(root, target):
    """Write the student edition of every set into a folder, which is emptied first; what only an instructor may see
    stays nowhere.  Editions that were made from the same files before are left as they are.
    """
    wanted = {f"{name}.ipynb" for name in names(root)}
    made_from, noted = project.sum_of(root, MADE_FROM), target.with_suffix(".sum")
    if noted.exists() and noted.read_text() == made_from and wanted == {path.name for path in target.glob("*")}:
        return sorted(target.glob("*.ipynb"))
    project.remove(noted)
    project.remove(target)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as course:
        made = [Path(shutil.copy(path, target)) for path in make_course(root, Path(course), names(root))]
    noted.write_text(made_from)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="the problem sets to make (default: all)")
    parser.add_argument("--course", type=Path, default=project.ROOT / "course", help="the course folder")
    options = parser.parse_args()
    try:
        made = make_course(project.ROOT, options.course.resolve(), options.names or names(project.ROOT))
    except (AssignmentError, OSError, yaml.YAMLError) as error:
        sys.exit(f"No assignment was made: {error}")
    for path in made:
        print(f"student edition: {path}")
    print(f"The course is in {options.course}; its source/ is for instructors only.")


if __name__ == "__main__":
    main()
