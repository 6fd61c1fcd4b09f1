"""Finding a Chromium, and what is said and done where there is none."""

import shutil
import subprocess
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from tools.build import project
from tools.site import browser


@pytest.fixture
def no_browser(monkeypatch, tmp_path):
    """A PATH with nothing on it, and no browser named."""
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(path, text="#!/bin/sh\nexit 0\n"):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_browser_is_found_by_name_and_by_variable(no_browser, monkeypatch):
    assert browser.find() is None
    by_name = program(no_browser / "chromium-browser")
    assert browser.find() == by_name
    monkeypatch.setenv(browser.VARIABLE, program(no_browser / "my-own"))
    assert browser.find() == str(no_browser / "my-own")
    monkeypatch.setenv(browser.VARIABLE, "/no/such/browser")
    assert browser.find() is None, "a browser that was asked for is not replaced by another one"
    assert "CHROMIUM=/no/such/browser is not a program" in browser.missing()


def test_run_without_a_browser_says_so_in_one_line_and_passes(no_browser, capsys):
    assert browser.run(project.ROOT) == 0
    assert capsys.readouterr().out.splitlines() == [browser.missing()]
    assert "WERE NOT RUN" in browser.missing()


def test_site_that_was_not_built_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv(browser.VARIABLE, program(tmp_path / "chromium"))
    with pytest.raises(SystemExit, match="holds no built site; run `make book` first"):
        browser.run(tmp_path)


@pytest.fixture
def checkout(tmp_path):
    """What .ci/run reads, and a folder of commands that say what they are called with."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(project.ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "env", "id"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    program(tmp_path / "bin" / "make", '#!/bin/sh\necho "make $*"\n')
    return tmp_path


def ci(checkout):
    done = subprocess.run(
        [".ci/run"], cwd=checkout, env={"PATH": str(checkout / "bin")}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_ci_installs_a_browser_only_where_there_is_none(checkout):
    program(checkout / "bin" / "sudo", '#!/bin/sh\nshift; "$@"\n')
    program(checkout / "bin" / "apt-get", '#!/bin/sh\necho "$*" >>asked\n')
    script = (project.ROOT / ".ci" / "run").read_text()
    assert f"for name in ${{CHROMIUM:-{' '.join(browser.NAMES)}}}; do" in script
    assert ci(checkout) == ["make test"]
    assert (checkout / "asked").read_text().splitlines() == [
        "-qq update",
        "-qq install -y --no-install-recommends chromium",
    ]
    (checkout / "asked").unlink()
    program(checkout / "bin" / "google-chrome")
    assert ci(checkout) == ["make test"]
    assert not (checkout / "asked").exists()


@pytest.mark.parametrize("apt", [None, "#!/bin/sh\nexit 100\n"])
def test_ci_goes_on_where_no_browser_can_be_installed(checkout, apt):
    if apt:
        program(checkout / "bin" / "apt-get", apt)
    line, last = ci(checkout)
    assert "could not install Chromium" in line and last == "make test"


def test_site_is_served_to_this_machine_below_the_path_of_its_repository(tmp_path):
    (tmp_path / "page.html").write_text("here")
    fetch = build_opener(ProxyHandler({})).open
    with browser.serve(tmp_path, "/fork/") as address:
        assert address.startswith("http://127.0.0.1:") and address.endswith("/fork")
        with fetch(f"{address}/page.html") as answer:
            assert answer.read() == b"here"
        with pytest.raises(HTTPError, match="404"):
            fetch(f"{address.removesuffix('/fork')}/page.html")
