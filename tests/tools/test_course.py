"""Problem sets become a course, and nbgrader grades it: what is cut out, what is refused, what answers deserve, what
students get back, and how grading goes on after a cell that hangs or crashes.
"""

import csv
import html
import os
import re
import sys

import course
import nbformat
import pytest
import small_set

from tools.build import project
from tools.course import assignments, scores

ROOT = project.ROOT


@pytest.fixture
def checkout(tmp_path):
    return small_set.write(tmp_path / "checkout")


def test_there_is_one_set_for_each_part():
    assert assignments.names(ROOT) == list(assignments.PARTS)


@pytest.mark.parametrize("name", assignments.names(ROOT))
def test_a_set_is_complete(name):
    source = assignments.read(ROOT, name)
    text = "\n".join(cell.source for cell in source.cells if cell.cell_type == "markdown")
    assert ":::" not in text and "{ref}" not in text and "{doc}" not in text, "students open it as plain Markdown"
    headings = re.findall(r"^## .*\((\d+) points\)$", text, re.MULTILINE)
    by_machine, by_hand = assignments.points(source)
    assert 4 <= len(headings) <= 6 and sum(map(int, headings)) == by_machine + by_hand
    assert by_machine >= 20 and by_hand >= 3
    tests = [cell.source for cell in assignments.of_kind(source, "test")]
    assert any("equivalence.same" in test for test in tests) and any("ValueError" in test for test in tests)
    pages = project.toc_pages(ROOT)
    assert all(f"book/{chapter}" in pages for chapter in source.metadata["assignment"]["chapters"])


@pytest.mark.parametrize("name", assignments.names(ROOT))
def test_grades_are_what_the_answers_deserve(name, tmp_path):
    """Of the reference, an empty notebook, and wrong answers; where numbers hang on a name, two students more."""
    assignments.make_course(ROOT, tmp_path, [name])
    with (tmp_path / "nbgrader_config.py").open("a") as settings:
        settings.write(f"c.GuardedExecute.timeout = {project.HOUR}\n")
    handed_in = {student: course.answers(ROOT, name, student) for student in ("reference", "blank", "wrong")}
    named = "student-name" in handed_in["reference"]
    if named:
        handed_in["ann"] = handed_in["reference"] | {"student-name": 'student_name = "ann"'}
        handed_in["copied from ann"] = handed_in["ann"]
    for student, filled in handed_in.items():
        course.hand_in(tmp_path, name, student, filled)
    course.nbgrader(tmp_path, "autograde", name)
    source = assignments.read(ROOT, name)
    by_machine, by_hand = assignments.points(source)
    for essay in assignments.problems(source, "essay"):
        course.mark(tmp_path, name, "reference", essay["id"], essay["points"])
    given = scores.read(tmp_path, name)

    assert given["reference"]["score"] == given["reference"]["of"] == by_machine + by_hand, given["reference"]
    assert given["blank"]["score"] == 0 < given["wrong"]["score"] < by_machine, given["blank"]
    loses = {one["replaces"]: set(one["loses"]) for one in assignments.problems(source, "wrong")}
    expected = {"wrong": set().union(*loses.values())}
    expected |= {"ann": set(), "copied from ann": loses["student-name"]} if named else {}
    for student, lost in expected.items():
        cells = given[student]["cells"]
        assert {one["id"] for one in assignments.problems(source, "test") if not cells[one["id"]]} == lost, student

    course.nbgrader(tmp_path, "generate_feedback", name)
    hidden = course.secrets(ROOT, name)
    for student, filled in handed_in.items():
        (page,) = (tmp_path / "feedback" / student / name).glob("*.html")
        shown = html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))
        assert not (hidden - set().union(*map(course.lines, filled.values()))) & course.lines(shown)
        assert f"(Score: {given[student]['score']:.1f} / {given[student]['of']:.1f})" in shown


def test_student_editions_are_made_again_only_when_their_sets_changed(checkout, tmp_path):
    (first,) = assignments.student_editions(checkout, tmp_path / "students")
    first.write_text("kept")
    assert assignments.student_editions(checkout, tmp_path / "students") == [first] and first.read_text() == "kept"
    source = checkout / "book" / "assignments" / f"{first.stem}.md"
    source.write_text(source.read_text().replace("(", "( ", 1))
    (again,) = assignments.student_editions(checkout, tmp_path / "students")
    assert again == first and first.read_text() != "kept"
    again.unlink()
    assert assignments.student_editions(checkout, tmp_path / "students") == [first] and first.exists()


def test_the_two_editions_of_a_small_set(checkout, tmp_path, monkeypatch):
    """Commands of the environment need not be on the path; settings of a course are kept."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (student,) = assignments.make_course(checkout, tmp_path / "course", ["small"])
    assert os.environ["PATH"] == "/usr/bin:/bin"
    released = "\n".join(cell.source for cell in nbformat.read(student, as_version=4).cells)
    secret = ("quotient_of_two", "isclose", "one and one", "//")
    assert not [word for word in secret if word in released]
    assert '"""Half of a number."""' in released and 'assert half(4) == 2, "half of four"' in released
    source = nbformat.read(tmp_path / "course" / "source" / "small" / "small.ipynb", as_version=4)
    kept = "\n".join(cell.source for cell in source.cells)
    assert [word for word in secret if word in kept] == list(secret[:3])
    about = [cell.metadata["nbgrader"] for cell in source.cells if "nbgrader" in cell.metadata]
    locked = {one["grade_id"] for one in about if one["locked"]}
    assert {"half-of-even", "half-of-odd", "twice-value"} < locked and len(locked) == 4  # and the given cell
    before, settings = student.read_bytes(), tmp_path / "course" / "nbgrader_config.py"
    settings.write_text("c = get_config()\n")
    assert assignments.make_course(checkout, tmp_path / "course", ["small"])[0].read_bytes() == before
    assert settings.read_text() == "c = get_config()\n"


def test_with_a_remote_the_first_cell_installs_the_library(checkout, monkeypatch):
    for remote in (None, project.Remote("github.com", "someone/fork", "main")):
        monkeypatch.setattr(project, "remote", lambda root: remote)
        first = assignments.instructor_edition(checkout, "small").cells[0].source
        assert ("git+https://github.com/someone/fork@main" in first) == (remote is not None)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("minutes: 5", "hours: 5", "assignment.minutes"),
        ("id: half-of-odd, points: 2", "id: half-of-even, points: 2", "half-of-even: used twice"),
        ("points: 4", "points: 0", "twice-value: points"),
        ("kind: answer, id: twice", "kind: reply, id: twice", "`problem` needs a kind"),
        ("    ### END SOLUTION", "    ### SOLUTION ENDS", "half: an answer has one region"),
        ("loses: [twice-value]", "loses: [thrice-value]", "must lose tests of the set"),
        ("replaces: twice", "replaces: half", "every answer needs one wrong answer"),
        ("assert twice_seven == 14\n### END HIDDEN TESTS", "### END HIDDEN TESTS\ntwice_seven", "in a bare expression"),
        ('"kind": "essay"', '"kind": "test"', "an essay is text"),
        ("import math", "import math\n### BEGIN SOLUTION", "has a region"),
    ],
)
def test_mistakes_in_a_set_are_named(checkout, old, new, sentence):
    assert old in small_set.SOURCE
    small_set.write(checkout, small_set.SOURCE.replace(old, new))
    with pytest.raises(assignments.AssignmentError, match="book/assignments/small.md: ") as caught:
        assignments.read(checkout, "small")
    assert sentence in str(caught.value)


def test_what_is_missing_is_named(checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["assignments", "no-such-set"])
    with pytest.raises(SystemExit, match="No assignment was made: there is no problem set 'no-such-set'; there are: f"):
        assignments.main()
    monkeypatch.setattr(sys, "argv", ["scores", "--course", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"No scores: .*gradebook.db is not there; grade a set first"):
        scores.main()
    monkeypatch.setitem(sys.modules, "nbgrader.apps", None)
    with pytest.raises(assignments.AssignmentError, match="nbgrader is not installed; `make assignments` installs it"):
        assignments.make_course(checkout, tmp_path / "course", ["small"])


HANGS = "def half(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
WARNS = "import sys\ndef half(x):\n    print(1, file=sys.stderr)\n    return x / 2"
GOOD = {"half": "def half(x):\n    return x / 2", "twice": "twice_seven = 14"}
CHANGED = dict.fromkeys(("half-of-even", "half-of-odd"), "assert True")
SUBMISSIONS = {  # and the points of the three tests
    "hangs-later": (GOOD | {"half": HANGS}, (0, 0, 4)),
    "dies-later": (GOOD | {"half": "import os\ndef half(x):\n    os._exit(1)"}, (0, 0, 4)),
    "dies-at-once": (GOOD | {"half": "import os\nos.kill(os.getpid(), 9)"}, (0, 0, 4)),
    "never-ends": (GOOD | {"half": "while True:\n    pass"}, (0, 0, 4)),
    "talks-forever": (GOOD | {"half": "while True:\n    print('and')"}, (0, 0, 4)),
    "second-dies": (GOOD | {"twice": "twice_seven = 14\nimport os\nos._exit(1)"}, (1, 2, 0)),
    "warns": (GOOD | {"half": WARNS, "why": "An answer that waits for its mark."}, (1, 2, 4)),
    "edits-tests": (CHANGED | {"twice": GOOD["twice"]}, (0, 0, 4)),
    "deletes-tests": (GOOD, (1, 2, 4)),
}


def test_a_cell_that_hangs_or_crashes_costs_its_own_points_and_scores_go_out_by_question(checkout, tmp_path, capsys):
    classroom = tmp_path / "course"
    assignments.make_course(checkout, classroom, ["small"])
    with (classroom / "nbgrader_config.py").open("a") as settings:
        settings.write("c.GuardedExecute.timeout = 6\n")
    for student, (filled, _) in SUBMISSIONS.items():
        course.hand_in(classroom, "small", student, filled)
    path = classroom / "submitted" / "deletes-tests" / "small" / "small.ipynb"
    notebook = nbformat.read(path, as_version=4)
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    del notebook.cells[names.index("half-of-odd")]
    nbformat.write(notebook, path)
    course.nbgrader(classroom, "autograde", "small")
    given, tests = scores.read(classroom, "small"), ("half-of-even", "half-of-odd", "twice-value")
    for student, (_, expected) in SUBMISSIONS.items():
        assert tuple(given[student]["cells"][name] for name in tests) == expected, student
    course.nbgrader(classroom, "generate_feedback", "small")
    said = [classroom / "feedback" / student / "small" / "small.html" for student in ("never-ends", "dies-later")]
    assert "stopped after 6 s" in said[0].read_text(encoding="utf-8")
    assert "isclose" not in said[1].read_text(encoding="utf-8")

    for student in set(SUBMISSIONS) - {"warns"}:
        course.mark(classroom, "small", student, "why", 1)
    scores.export(classroom, ["small"])
    printed = capsys.readouterr().out
    assert printed.startswith("small: 9 students, 5.4 of 10 points on average\n")  # 6 x 5, 4, 7 and 8
    lines = {first: rest.split() for first, rest in re.findall(r"^ *(\S+) +(.*)$", printed, re.M)}
    assert lines["half-of-even"] == ["1", "33%", "33%", "0.16"] and lines["twice-value"][:3] == ["4", "89%", "89%"]
    assert lines["Halves"] == ["10", "54%", "0%", "-"], "the only problem: there is no rest"
    assert "no total is exported" in printed and "of warns:" in printed
    with (classroom / "scores" / "small.csv").open(encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert [rows["warns"][name] for name in (*tests, "why", "score")] == ["1.0", "2.0", "4.0", "0.0", "7.0"]
    with (classroom / "scores" / "gradebook.csv").open(encoding="utf-8") as file:
        totals = list(csv.DictReader(file))
    assert list(totals[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "small"]
    assert {row["SIS Login ID"]: row["small"] for row in totals} == {
        student: "" if student == "warns" else f"{given[student]['score'] + 1:.1f}" for student in SUBMISSIONS
    }
