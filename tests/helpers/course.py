"""A class of made-up students for the tests of the problem sets: what they hand in, and what nbgrader gives them."""

import subprocess
import sys
from pathlib import Path

import nbformat

from tools.course import assignments, scores


def nbgrader(course, *arguments):
    """Run an nbgrader command in the course folder, as an instructor does; its messages if it succeeds."""
    command = [Path(sys.executable).with_name("nbgrader"), *arguments]
    done = subprocess.run(command, cwd=course, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def answers(root, name, edition):
    """The cells that a student fills in: a dict from id to source.  Editions: reference, blank, wrong."""
    filled = {"reference": ("answer", "essay"), "blank": (), "wrong": ("answer", "essay", "wrong")}[edition]
    cells = [cell for kind in filled for cell in assignments.of_kind(assignments.read(root, name), kind)]
    names = [cell.metadata["problem"].get("replaces") or cell.metadata["problem"]["id"] for cell in cells]
    texts = ["\n".join(line for line in cell.source.split("\n") if "### " not in line) for cell in cells]
    return dict(zip(names, texts, strict=True))


def hand_in(course, name, student, filled):
    """Put a submission into the course: the student edition with some cells filled in."""
    notebook = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        identity = cell.metadata.get("nbgrader", {}).get("grade_id")
        if identity in filled:
            cell.source = filled[identity]
    target = course / "submitted" / student / name / f"{name}.ipynb"
    target.parent.mkdir(parents=True)
    nbformat.write(notebook, target)


def mark(course, name, student, cell, points):
    """Give points to an answer, as a human does."""
    with scores.gradebook(course) as book:
        grade = book.find_grade(cell, name, name, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        book.db.commit()


def lines(text):
    """The lines of a text that say something, without indentation."""
    return {line.strip() for line in text.split("\n")} - {""}


def secrets(root, name):
    """Lines of a set's solutions, model answers, hidden tests and wrong answers that stand nowhere in what a student
    may see.

    Lines shorter than 15 characters are left out: they occur everywhere.
    """
    hidden, open_ = set(), set()
    for cell in assignments.read(root, name).cells:
        if assignments.kind(cell) in ("essay", "wrong"):
            hidden |= lines(cell.source)
            continue
        inside = False
        for line in cell.source.split("\n"):
            if "### BEGIN" in line or "### END" in line:
                inside = "### BEGIN" in line
            else:
                (hidden if inside else open_).add(line.strip())
    return {line for line in hidden - open_ if len(line) >= 15}
