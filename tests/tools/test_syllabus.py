"""Syllabi: chapters come after what they build on, and problem sets exist."""

import pytest

from tools.build import dependencies, project
from tools.course import assignments
from tools.sphinx_ext import syllabus

FOUND = {
    f"book/{name}": dependencies.Chapter(f"book/{name}", name, "Part", 60, tuple(f"book/{needed}" for needed in needs))
    for name, needs in (("p/a", ()), ("p/b", ("p/a",)), ("p/c", ("p/a", "p/b")))
}


def test_weeks_are_read():
    assert syllabus.weeks(["p/a, p/b | small", "", "p/c"], FOUND, ["small"]) == [
        (["book/p/a", "book/p/b"], "small"),
        (["book/p/c"], ""),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["p/b"], "book/p/b builds on book/p/a: list that before it"),
        (["p/b, p/a"], "book/p/b builds on book/p/a: list that before it"),
        (["p/a, p/c"], "book/p/c builds on book/p/b: list that before it"),
        (["p/z"], "book/p/z is not a chapter of the book"),
        (["p/a | large"], "there is no problem set 'large'; there are: small"),
    ],
)
def test_a_syllabus_that_cannot_be_taught_is_refused(lines, message):
    with pytest.raises(ValueError, match=message):
        syllabus.weeks(lines, FOUND, ["small"])


def test_both_syllabi_hand_out_every_set_once():
    text = (project.ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    plans = [block.split("```")[0].split("\n") for block in text.split("```{syllabus}\n")[1:]]
    found, names = dependencies.chapters(project.ROOT), assignments.names(project.ROOT)
    assert [len(syllabus.weeks(plan, found, names)) for plan in plans] == [12, 6]
    for plan in plans:
        assert [handed_out for _, handed_out in syllabus.weeks(plan, found, names) if handed_out] == names
