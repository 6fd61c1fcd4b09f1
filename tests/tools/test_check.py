"""``make test`` ends with what failed, in a line, and a command that repeats just that."""

import sys

import pytest

from tools.build import check, faults, project

TESTS = """import pytest

def test_good():
    pass

@pytest.mark.parametrize("page", ["a b"])
def test_bad(page):
    assert page == "book/c", "no such page"

def test_without_its_fixture(absent):
    pass

@pytest.mark.slow
def test_slow():
    assert False
"""


def test_each_fault_has_a_line_and_a_command_that_repeats_it(tmp_path, monkeypatch, capfd):
    (tmp_path / "test_it.py").write_text(TESTS)
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(check.__file__).removesuffix("/tools/build/check.py"))
    options = ["-p", faults.__name__, "-p", "no:cacheprovider", "-m", "not slow", "-n1"]
    status, lines = check.run([sys.executable, "-m", "pytest", "-q", *options, "test_it.py"])
    assert status == 1 and "2 deselected" not in capfd.readouterr().out
    assert sorted(lines[::2]) == [
        "test_it.py::test_bad[a b]: AssertionError: no such page",
        "test_it.py::test_without_its_fixture: fixture 'absent' not found",
    ]
    assert "    again: .venv/bin/python -m pytest 'test_it.py::test_bad[a b]'" in lines
    assert check.run([sys.executable, "-m", "pytest", "-q", "test_it.py::test_good"])[0] == 0


def test_a_stage_that_marks_nothing_ends_with_its_last_lines_and_its_command(monkeypatch, tmp_path):
    monkeypatch.setattr(project, "ROOT", tmp_path)
    status, lines = check.run([sys.executable, "-c", "import sys; print('one\\ntwo'); sys.exit('The page x is wrong')"])
    assert status == 1 and sorted(lines[:3]) == ["The page x is wrong", "one", "two"]
    assert lines[3].startswith("    again: .venv/bin/python -c ")


def test_all_stages_run_and_the_site_is_looked_at_where_it_was_built(monkeypatch, capsys):
    ran = []

    def run(command):
        ran.append(command)
        return ("tools.build.book" in command), ["it broke", "    again: make book"]

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(sys, "argv", ["check"])
    with pytest.raises(SystemExit, match="make test failed in: build"):
        check.main()
    assert capsys.readouterr().out.endswith("== FAILED in build:\nit broke\n    again: make book\n")
    assert len(ran) == 7 and "--ignore=tests/site" in ran[-1] and "not slow" in ran[-1]
    every = list(check.steps(True, {}))[-1][1]
    assert "not slow" not in every and "--ignore=tests/site" not in every


def test_the_marker_is_registered(pytestconfig):
    assert any(line.startswith("slow:") for line in pytestconfig.getini("markers"))
