"""Problem sets become a course: what is cut out, what is refused, and how grading goes on after a cell that hangs or
crashes.
"""

import os
import re
import sys

import course
import nbformat
import pytest
import small_set

from tools.build import project
from tools.course import assignments

ROOT = project.ROOT


@pytest.fixture
def checkout(tmp_path):
    return small_set.write(tmp_path / "checkout")


def test_there_is_one_set_for_each_part_with_a_source():
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


def test_student_editions_hold_no_secret(tmp_path):
    for path in assignments.student_editions(ROOT, tmp_path / "students"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        hidden = course.secrets(ROOT, path.stem)
        assert len(hidden) > 30
        assert not hidden & course.lines("\n".join(cell.source for cell in notebook.cells))
        assert not any("problem" in cell.metadata or cell.get("outputs") for cell in notebook.cells)
        blanks = [cell for cell in notebook.cells if re.search("# YOUR CODE HERE\n|^YOUR ANSWER HERE$", cell.source)]
        source = assignments.read(ROOT, path.stem)
        assert len(blanks) == len(assignments.of_kind(source, "answer") + assignments.of_kind(source, "essay"))


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
        (
            "assert twice_seven == 14\n### END HIDDEN TESTS",
            "### END HIDDEN TESTS\ntwice_seven",
            "ends in a bare expression",
        ),
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


def test_unknown_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["assignments", "no-such-set"])
    with pytest.raises(SystemExit, match="No assignment was made: there is no problem set 'no-such-set'; there are: f"):
        assignments.main()


def test_missing_nbgrader(checkout, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbgrader.apps", None)
    with pytest.raises(assignments.AssignmentError, match="nbgrader is not installed; `make assignments` installs it"):
        assignments.make_course(checkout, tmp_path / "course", ["small"])


HANGS = (
    "def half(x):\n    while True:\n        try:\n            while True:\n                pass\n        except "
    "BaseException:\n            pass"
)
DIES = "import os\ndef half(x):\n    os._exit(1)"
GOOD = {"half": "def half(x):\n    return x / 2", "twice": "twice_seven = 14"}
SUBMISSIONS = {
    "hangs-later": GOOD | {"half": HANGS},
    "dies-later": GOOD | {"half": DIES},
    "dies-at-once": GOOD | {"half": "import os\nos.kill(os.getpid(), 9)"},
    "never-ends": GOOD | {"half": "while True:\n    pass"},
    "talks-forever": GOOD | {"half": "while True:\n    print('and')"},
    "second-dies": GOOD | {"twice": "twice_seven = 14\nimport os\nos._exit(1)"},
    "warns": GOOD | {"half": "import sys\ndef half(x):\n    print('careful', file=sys.stderr)\n    return x / 2"},
}
EXPECTED = {"second-dies": (1, 2, 0), "warns": (1, 2, 4), "edits-tests": (0, 0, 4), "deletes-tests": (1, 2, 4)}


def test_a_cell_that_hangs_or_crashes_costs_its_own_points(checkout, tmp_path):
    classroom = tmp_path / "course"
    assignments.make_course(checkout, classroom, ["small"])
    with (classroom / "nbgrader_config.py").open("a") as settings:
        settings.write("c.GuardedExecute.timeout = 6\n")
    changed = dict.fromkeys(("half-of-even", "half-of-odd"), "assert True")
    more = {"edits-tests": changed | {"twice": GOOD["twice"]}, "deletes-tests": GOOD}
    for student, filled in (SUBMISSIONS | more).items():
        course.hand_in(classroom, "small", student, filled)
    path = classroom / "submitted" / "deletes-tests" / "small" / "small.ipynb"
    notebook = nbformat.read(path, as_version=4)
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    del notebook.cells[names.index("half-of-odd")]
    nbformat.write(notebook, path)
    course.nbgrader(classroom, "autograde", "small")
    given, tests = course.scores(classroom, "small"), ("half-of-even", "half-of-odd", "twice-value")
    for student in (*SUBMISSIONS, *EXPECTED):
        found = tuple(given[student]["cells"][name] for name in tests)
        assert found == EXPECTED.get(student, (0, 0, 4)), student
    course.nbgrader(classroom, "generate_feedback", "small")
    said = [classroom / "feedback" / student / "small" / "small.html" for student in ("never-ends", "dies-later")]
    assert "stopped after 6 s" in said[0].read_text(encoding="utf-8")
    assert "isclose" not in said[1].read_text(encoding="utf-8")
