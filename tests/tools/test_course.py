"""nbgrader grades every problem set: the reference solution, the blank edition, plausible wrong answers; and what
students get back.
"""

import html
import re

import course
import pytest

from tools.build import project
from tools.course import assignments

ROOT = project.ROOT
NAMES = assignments.names(ROOT)


@pytest.mark.parametrize("name", NAMES)
def test_grades_are_what_the_answers_deserve(name, tmp_path):
    assignments.make_course(ROOT, tmp_path, [name])
    with (tmp_path / "nbgrader_config.py").open("a") as settings:
        settings.write(f"c.GuardedExecute.timeout = {project.HOUR}\n")
    for student in ("reference", "blank", "wrong"):
        course.hand_in(tmp_path, name, student, course.answers(ROOT, name, student))
    course.nbgrader(tmp_path, "autograde", name)
    source = assignments.read(ROOT, name)
    by_machine, by_hand = assignments.points(source)
    essays = {
        assignments.identity(cell): cell.metadata["problem"]["points"] for cell in assignments.of_kind(source, "essay")
    }
    marks = [{"student": "reference", "cell": cell, "points": points} for cell, points in essays.items()]
    given = course.scores(tmp_path, name, marks)

    assert given["reference"]["of"] == by_machine + by_hand
    assert given["reference"]["score"] == by_machine + by_hand, given["reference"]
    assert given["blank"]["score"] == 0, given["blank"]
    lost = {cell for wrong in assignments.of_kind(source, "wrong") for cell in wrong.metadata["problem"]["loses"]}
    for cell in assignments.of_kind(source, "test"):
        points = 0 if assignments.identity(cell) in lost else cell.metadata["problem"]["points"]
        assert given["wrong"]["cells"][assignments.identity(cell)] == points, assignments.identity(cell)
    assert 0 < given["wrong"]["score"] < by_machine

    course.nbgrader(tmp_path, "generate_feedback", name)
    hidden = course.secrets(ROOT, name)
    for student in ("reference", "blank", "wrong"):
        (page,) = (tmp_path / "feedback" / student / name).glob("*.html")
        shown = html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))
        own = (
            set()
            if student == "blank"
            else set().union(*map(course.lines, course.answers(ROOT, name, student).values()))
        )
        assert not (hidden - own) & course.lines(shown)
        assert f"(Score: {given[student]['score']:.1f} / {given[student]['of']:.1f})" in shown
