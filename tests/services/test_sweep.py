"""Sweeps: seeds come from the place in the list, finished tasks are kept, and only for the code that made them."""

import os
import pickle

import numpy as np
import pytest

from lib.services import presets, sweep


def counted(log, value, rng):
    """Append a line to a file, so that a test sees how often it ran; a value of zero fails."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{value}\n")
    if value == 0:
        raise RuntimeError("interrupted")
    return value, np.random.default_rng(rng).random()


def process(rng):
    return os.getpid()


def doubled(values, rng):
    values *= 2
    return values.tolist()


def tasks(log, *values):
    return [{"log": str(log), "value": value} for value in values]


def test_seeds_do_not_depend_on_the_number_of_workers_or_the_callers_sequence(tmp_path):
    given = np.random.SeedSequence(5)
    given.spawn(3)
    one = sweep.run(counted, tasks(tmp_path / "log", 3, 1, 2), 5)
    assert sweep.run(counted, tasks(tmp_path / "log", 3, 1, 2), given, workers=2) == one
    assert [value for value, _ in one] == [3, 1, 2]
    children = np.random.SeedSequence(5).spawn(3)
    assert [number for _, number in one] == [np.random.default_rng(child).random() for child in children]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_task_sees_what_another_does_to_its_setting(workers):
    shared = np.ones(2)
    assert sweep.run(doubled, [{"values": shared}] * 3, 5, workers=workers) == [[2.0, 2.0]] * 3
    assert shared.tolist() == [1.0, 1.0]


def test_every_sweep_has_processes_of_its_own():
    # A worker that is used again loads what the next task needs; joblib takes that for a memory leak and stops it.
    first, second = (set(sweep.run(process, [{}] * 4, 5, workers=2)) for _ in range(2))
    assert first and second and not first & second and os.getpid() not in first | second
    assert sweep.run(process, [{}], 5) == [os.getpid()]


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "kept"
    with pytest.raises(RuntimeError, match="interrupted"):
        sweep.run(counted, tasks(log, 1, 2, 0, 4), 5, folder=folder)
    whole = sweep.run(counted, tasks(log, 1, 2, 3, 4), 5, folder=folder)
    assert log.read_text().split() == ["1", "2", "0", "3", "4"]
    assert whole == sweep.run(counted, tasks(tmp_path / "other", 1, 2, 3, 4), 5)


def test_a_kept_result_serves_its_own_seed_place_and_code_only(tmp_path, monkeypatch):
    log, folder = tmp_path / "log", tmp_path / "kept"
    first = sweep.run(counted, tasks(log, 1, 1), 5, folder=folder)
    assert first[0] != first[1]
    assert sweep.run(counted, tasks(log, 1), 6, folder=folder)[0] != first[0]
    assert len(log.read_text().split()) == 3
    monkeypatch.setattr(sweep.provenance, "_digest", lambda found: "changed")
    assert sweep.run(counted, tasks(log, 1, 1), 5, folder=folder) == first
    assert len(log.read_text().split()) == 5


def test_a_damaged_result_is_computed_again(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "kept"
    (first,) = sweep.run(counted, tasks(log, 1), 5, folder=folder)
    (path,) = folder.rglob("output.pkl")
    whole = path.read_bytes()
    payload = whole.index(pickle.dumps(first)[2:-1])
    for place in range(payload, payload + len(pickle.dumps(first)) - 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        runs = len(log.read_text().split())
        assert sweep.run(counted, tasks(log, 1), 5, folder=folder) == [first]
        assert len(log.read_text().split()) == runs + 1
    for damaged in (b"", whole[:-20], pickle.dumps(first), pickle.dumps((b"1", "2"))):
        path.write_bytes(damaged)
        assert sweep.run(counted, tasks(log, 1), 5, folder=folder) == [first]
    runs = len(log.read_text().split())
    assert sweep.run(counted, tasks(log, 1), 5, folder=folder) == [first]  # a sound result is in its place again
    assert len(log.read_text().split()) == runs


def test_a_task_of_the_running_script_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(counted, "__module__", "__main__")
    with pytest.raises(ValueError, match="^task must be put into a module"):
        sweep.run(counted, tasks(tmp_path / "log", 1), 5, folder=tmp_path / "kept")
    assert not (tmp_path / "log").exists() and not (tmp_path / "kept").exists()
    monkeypatch.setenv(presets.ENVIRONMENT, "paper")
    monkeypatch.setattr(sweep.pooch, "os_cache", lambda name: tmp_path / name)
    with pytest.raises(ValueError, match="^task must be put into a module"):
        sweep.run(counted, tasks(tmp_path / "log", 1), 5)
    monkeypatch.setenv(presets.ENVIRONMENT, "quick")
    assert [value for value, _ in sweep.run(counted, tasks(tmp_path / "log", 1), 5)] == [1]


def test_the_paper_preset_keeps_and_quick_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep.pooch, "os_cache", lambda name: tmp_path / name)
    for name, kept in (("quick", False), ("paper", True)):
        monkeypatch.setenv(presets.ENVIRONMENT, name)
        sweep.run(counted, tasks(tmp_path / "log", 1), 5, workers=1)
        assert (tmp_path / "physics-of-learning" / "sweeps").exists() == kept


def test_progress_counts_on_the_terminal(monkeypatch, tmp_path):
    terminal, opened = tmp_path / "terminal", []

    def fake(path, *rest, **named):
        opened.append(path)
        return open(terminal, "w", encoding="utf-8")

    monkeypatch.setattr(sweep, "open", fake, raising=False)
    sweep.run(counted, tasks(tmp_path / "log", 1, 2), 5, folder=tmp_path / "kept")
    assert opened == ["/dev/tty"] and "counted: 100%" in terminal.read_text() and "2/2" in terminal.read_text()
    sweep.run(counted, tasks(tmp_path / "log", 1, 2), 5)
    assert len(opened) == 1


def test_without_a_terminal_a_sweep_is_silent(monkeypatch, tmp_path, capfd):
    def missing(*_, **__):
        raise OSError("no terminal")

    monkeypatch.setattr(sweep, "open", missing, raising=False)
    assert len(sweep.run(counted, tasks(tmp_path / "log", 1), 5, folder=tmp_path / "kept")) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("task", [None, "task", 3, lambda rng: rng]),
        ("settings", [None, "settings", 3, [1], {"value": 1}, [{"rng": 1}], [{1: 2}]]),
        ("folder", [3, "", "~nouser/x"]),
    ],
)
def test_what_is_no_sweep_is_refused(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} must"):
            sweep.run(**{"task": process, "settings": [{}], "rng": 5} | {name: value})
