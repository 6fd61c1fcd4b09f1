"""A sweep on a real Dask cluster: what one machine gives, whatever happens to workers and scheduler."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest
from cluster_tasks import OTHER_NUMPY, Cluster, lines, tiny, traced, wait_until
from distributed import KilledWorker

from lib.scaling import structured
from lib.services import cluster, sweep


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A scheduler without workers, which sweeps find by its file."""
    running = Cluster(tmp_path)
    monkeypatch.setenv(cluster.ENVIRONMENT, str(running.file))
    yield running
    running.close()


def settings(log, count, wait=0.0):
    return [{"log": str(log), "value": value, "wait": wait} for value in range(count)]


def alone(monkeypatch, *arguments, **options):
    """The same sweep without the cluster."""
    with monkeypatch.context() as here:
        here.delenv(cluster.ENVIRONMENT)
        return sweep.run(*arguments, **options)


def run_beside(*arguments, **options):
    """Start a sweep in a thread; returns the thread, and a dict that will hold its result or its error."""
    outcome = {}

    def target():
        try:
            outcome["result"] = sweep.run(*arguments, **options)
        except Exception as error:  # handed to the test, which looks at it
            outcome["error"] = error

    thread = threading.Thread(target=target)
    thread.start()
    return thread, outcome


def test_results_are_those_of_one_machine_with_one_worker_or_two_and_ten_thousand_tiny_tasks(started, monkeypatch):
    started.worker()
    overlaps = [{"multiplicities": [10, 20, 30], "students": 2, "teachers": 2} for _ in range(5)]
    many = [{"value": value} for value in range(10_000)]
    here = [alone(monkeypatch, structured.random_overlaps, overlaps, 3), alone(monkeypatch, tiny, many, 4)]
    one = sweep.run(structured.random_overlaps, overlaps, 3)
    started.worker()
    two = [sweep.run(structured.random_overlaps, overlaps, 3), sweep.run(tiny, many, 4)]
    assert pickle.dumps([one, two[1]]) == pickle.dumps(here) == pickle.dumps(two)


def test_a_killed_worker_and_a_late_one_change_nothing(started, monkeypatch, tmp_path):
    log, go = tmp_path / "log", tmp_path / "go"
    first = started.worker()
    work = settings(log, 12)
    work[3]["until"] = str(go)  # where the first worker stands when it is killed
    thread, outcome = run_beside(traced, work, 5, folder=tmp_path / "kept")
    wait_until(lambda: len(lines(log)) == 4)
    started.worker()
    wait_until(lambda: len(lines(log)) >= 11)  # all but what the first has in hand
    os.kill(first.pid, signal.SIGKILL)
    go.touch()
    thread.join()
    assert outcome["result"] == alone(monkeypatch, traced, settings(tmp_path / "other", 12), 5)
    done = [value for _, value in lines(log)]
    assert len({process for process, _ in lines(log)}) == 2
    assert set(done) == set(range(12)) and len(done) > 12  # what the lost worker had in hand was done again


def test_a_killed_scheduler_is_named_and_what_was_done_is_kept(started, monkeypatch, tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    started.worker()
    assert len(sweep.run(tiny, [{"value": 1}], 5)) == 1  # the worker is there
    monkeypatch.setattr(cluster, "PATIENCE", 3)
    thread, outcome = run_beside(traced, settings(log, 30, wait=0.2), 5, folder=kept)
    wait_until(lambda: len(lines(log)) >= 8)
    started.scheduler.kill()
    thread.join()
    assert isinstance(outcome["error"], cluster.ClusterError) and "was lost" in str(outcome["error"])
    before = len(lines(log))
    result = alone(monkeypatch, traced, settings(log, 30, wait=0.2), 5, folder=kept)
    assert result == alone(monkeypatch, traced, settings(tmp_path / "other", 30), 5)
    again = [value for _, value in lines(log)[before:]]
    assert 30 - before <= len(again) <= 30 - before + 3


def test_a_failing_task_keeps_what_was_done(started, monkeypatch, tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    started.worker()
    failing = settings(log, 6) + [{"log": str(log), "value": -1}]
    with pytest.raises(ValueError, match="^value must not be negative\nThis was task 6 of the sweep; what ended"):
        sweep.run(traced, failing, 5, folder=kept)
    before = len(lines(log))
    alone(monkeypatch, traced, settings(log, 6), 5, folder=kept)
    assert len(lines(log)) == before == 7


@pytest.mark.filterwarnings("ignore::distributed.versions.VersionMismatchWarning")  # if the worker is there first
def test_other_versions_are_refused_before_the_first_task_and_later(started, monkeypatch, tmp_path):
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "sitecustomize.py").write_text(OTHER_NUMPY)
    log, mine = tmp_path / "log", np.__version__
    other = started.worker(path=[odd])
    with pytest.raises(cluster.ClusterError, match=f"on the worker tcp://.* numpy is 1.0 instead of {mine}: give it"):
        sweep.run(traced, settings(log, 2), 5)
    assert lines(log) == []
    other.kill()
    other.wait()
    started.worker()
    work = [setting | {"until": str(tmp_path / "go")} for setting in settings(log, 10)]
    thread, outcome = run_beside(traced, work, 5, folder=tmp_path / "kept")
    wait_until(lambda: lines(log))
    started.worker(path=[odd])
    thread.join()
    assert str(outcome["error"]).startswith(f"on the worker that came later numpy is 1.0 instead of {mine}")


def test_no_worker_no_scheduler_and_no_address(started, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    with pytest.raises(cluster.ClusterError, match="has no worker: start one with `dask worker`"):
        sweep.run(tiny, [{"value": 1}], 5)
    started.close()
    for where in (str(started.file), "tcp://127.0.0.1:1", "http://127.0.0.1:1"):
        monkeypatch.setenv(cluster.ENVIRONMENT, where)
        with pytest.raises(cluster.ClusterError, match=f"^no scheduler answers at {where}: start it, correct"):
            sweep.run(tiny, [{"value": 1}], 5)
    monkeypatch.setenv(cluster.ENVIRONMENT, "nowhere")
    with pytest.raises(cluster.ClusterError, match="must be tcp://host:port or the path of a scheduler file, got 'now"):
        sweep.run(tiny, [{"value": 1}], 5)


def test_a_worker_without_the_task_is_named(started, monkeypatch):
    started.worker()
    with pytest.raises(cluster.ClusterError, match="cannot import test_cluster .No module named 'test_cluster'.: inst"):
        sweep.run(run_beside, [{}], 5)


def test_what_ends_a_worker_is_told():
    lost = cluster._problem(KilledWorker("key", None, 3), 7, {})
    assert str(lost) == "task 7 ended every worker that tried it: it may need more memory than they have"
    assert str(cluster._problem(ModuleNotFoundError("No module named 'x'"), 1, {})).endswith("install the book there")


def test_the_address_is_the_environments(monkeypatch):
    for text, wanted in (("", None), (" ", None), (" tcp://host:1\n", "tcp://host:1")):
        monkeypatch.setenv(cluster.ENVIRONMENT, text)
        assert cluster._address() == wanted
    monkeypatch.delenv(cluster.ENVIRONMENT)
    assert cluster._address() is None
