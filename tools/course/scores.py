"""Scores of graded problem sets by question: ``python -m tools.course.scores`` (or ``make scores``), after grading.

It prints for each problem and each graded cell its points, the mean share of them, the share of students who have all,
and the discrimination: how the points go with those of the rest of the set (their correlation).  In the course folder
it writes ``scores/<name>.csv``, a row a student and a column a graded cell, and ``scores/gradebook.csv``, a column a
set, which Canvas and Moodle import.
"""

import argparse
import csv
import re
import sys
import warnings
from pathlib import Path
from statistics import StatisticsError, correlation, fmean

import nbformat

from tools.build import project

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")  # Canvas knows students by these


def gradebook(course):
    """The course's gradebook, to be used in a ``with``."""
    path = course / "gradebook.db"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; grade a set first (`nbgrader autograde`)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy's, about nbgrader's tables
        from nbgrader.api import Gradebook

        return Gradebook(f"sqlite:///{path}")


def read(course, name):
    """What students have in a set: a dict from each to `score`, `of`, `waits` (for a mark), and `cells` with points."""
    with gradebook(course) as book, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            one.student_id: {
                "name": ", ".join(filter(None, (one.student.last_name, one.student.first_name))) or one.student_id,
                "score": max(0, one.score - one.late_submission_penalty),
                "of": one.max_score,
                "waits": one.needs_manual_grade,
                "cells": {grade.name: grade.score for notebook in one.notebooks for grade in notebook.grades},
            }
            for one in book.assignment_submissions(name)
        }


def problems(course, name):
    """The problems of a set: a dict from each heading to a dict from its graded cells to their points."""
    found, heading = {}, name
    for cell in nbformat.read(course / "source" / name / f"{name}.ipynb", as_version=4).cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade"):
            found.setdefault(heading, {})[about["grade_id"]] = about["points"]
        elif cell.cell_type == "markdown":
            heading = [heading, *re.findall(r"^## (.*?)(?: \(.*)?$", cell.source, re.M)][-1]
    return found


def table(name, given, asked):
    """The lines of a set's statistics."""
    of, mean = next(iter(given.values()))["of"], fmean(one["score"] for one in given.values())
    yield f"{name}: {len(given)} students, {mean:.1f} of {of:g} points on average"
    yield f"{'':48}{'points':>8}{'mean':>8}{'all':>8}{'discrimination':>16}"
    for heading, cells in asked.items():
        for label, part in ((heading, cells), *((f"  {cell}", {cell: cells[cell]}) for cell in cells)):
            of = sum(part.values())
            points = [sum(one["cells"][cell] for cell in part) for one in given.values()]
            rest = [sum(one["cells"].values()) - own for one, own in zip(given.values(), points, strict=True)]
            try:
                together = f"{correlation(points, rest):.2f}"
            except StatisticsError:  # one student, or no differences
                together = "-"
            full = fmean(own >= of for own in points)
            yield f"{label[:47]:48}{of:8g}{fmean(points) / of:8.0%}{full:8.0%}{together:>16}"
    if waiting := [student for student, one in given.items() if one["waits"]]:
        yield f"Answers wait for a mark, or for its review, of {', '.join(waiting)}: no total is exported."


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def export(course, names):
    """Print the statistics of sets and write the tables; what was not handed in, or waits for a mark, stays empty."""
    sets = {name: read(course, name) for name in names}
    sets = {name: given for name, given in sets.items() if given}
    if not sets:
        raise LookupError(f"nothing is graded of {', '.join(names) or 'any set'}")
    for name, given in sets.items():
        asked = problems(course, name)
        print(*table(name, given, asked), "", sep="\n")
        cells = [cell for part in asked.values() for cell in part]
        rows = [[student, *(one["cells"][cell] for cell in cells), one["score"]] for student, one in given.items()]
        write(course / "scores" / f"{name}.csv", [["student", *cells, "score"], *rows])
    known = {student: one["name"] for given in sets.values() for student, one in given.items()}
    rows = [[*CANVAS, *sets]]
    for student in sorted(known):
        found = [given.get(student, {"waits": True}) for given in sets.values()]
        rows.append([known[student], "", "", student, "", *("" if one["waits"] else one["score"] for one in found)])
    write(course / "scores" / "gradebook.csv", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="the problem sets (default: all that are graded)")
    parser.add_argument("--course", type=Path, default=project.ROOT / "course", help="the course folder")
    options = parser.parse_args()
    try:
        with gradebook(options.course) as book:
            known = [assignment.name for assignment in book.assignments]
        export(options.course, options.names or known)
    except (OSError, LookupError) as error:
        sys.exit(f"No scores: {error}")
    print(f"Tables are in {options.course / 'scores'}.")


if __name__ == "__main__":
    main()
