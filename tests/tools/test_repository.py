"""The repository's own files: workflows whose steps run, forms that fit, a clone that works on Windows."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest
import yaml

from tools.build import check, project

ROOT = project.ROOT
HUB = ROOT / ".github"
FORMS = [path for path in sorted((HUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
WORKFLOWS = sorted((HUB / "workflows").glob("*.yml"))
JOBS = {path.stem: yaml.safe_load(project.read(path))["jobs"] for path in WORKFLOWS}
STEPS = [
    (f"{name}: {step['name']}", step["run"])
    for jobs in JOBS.values()
    for name, job in jobs.items()
    for step in job["steps"]
    if "run" in step
]
DEVICE = json.loads(project.read(ROOT / ".devcontainer" / "devcontainer.json"))
STEPS += [(f"devcontainer: {key}", value) for key, value in DEVICE.items() if key.endswith("Command")]
SCRIPT = dict(STEPS)
OUTSIDE = {"apt-get", "curl", "gh", "pipx", "sudo"}  # what a runner has, and this machine may lack


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.dependabot", [HUB / "dependabot.yml"]),
        ("vendor.github-issue-config", [HUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_a_file_fits_its_schema(schema, files):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert files and done.returncode == 0, done.stdout


def test_a_loose_workflow_is_found(tmp_path):
    """An action by its tag, a token for everything, a stranger's title in a script: the stage objects."""
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    steps = [{"uses": "actions/checkout@v7"}, {"run": "echo ${{ github.event.pull_request.title }}"}]
    job = {"runs-on": "ubuntu-24.04", "permissions": "write-all", "steps": steps}
    text = yaml.safe_dump({"name": "loose", "on": "pull_request", "jobs": {"a": job}})
    (tmp_path / ".github" / "workflows" / "loose.yml").write_text(text)
    command = dict(check.steps(False, {}))["workflows"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = {"unpinned-uses", "artipacked", "excessive-permissions", "template-injection"}
    assert done.returncode and {word for word in said if word in done.stdout} == said


def test_an_action_has_one_version_and_the_lint_runs_in_that_of_the_lock():
    used = re.findall(r"uses: (\S+)@([0-9a-f]{40}) # (v\S+)$", "".join(map(project.read, WORKFLOWS)), re.M)
    assert len(used) > 8 and len({name for name, *_ in used}) == len(set(used))
    assert f"zizmor=={version('zizmor')}" in SCRIPT["audit: Look at the workflows once more, with the network"]


@pytest.mark.parametrize(("name", "script"), STEPS)
def test_a_step_calls_only_what_there_is(name, script):
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    for line in re.sub(r"\\\n", " ", script).replace("&&", "\n").splitlines():
        command, *words = line.split()
        if command == "make":
            assert subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, check=False).returncode == 0
        elif command == "bash":
            assert subprocess.run(["bash", "-n", ROOT / words[0]], check=False).returncode == 0
        elif command.isidentifier() and command not in ("if", "fi"):
            assert command in OUTSIDE or shutil.which(command) or command in ("cd", "echo"), command


def play(name, folder, **variables):
    """Run a step's script as a runner does."""
    environment = {"PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCRIPT[name]]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


def git(folder, *arguments):
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_site_is_published_as_one_commit(tmp_path):
    """Twice, as after two changes, into a repository of this folder."""
    git(tmp_path, "init", "--quiet", "--bare", "there.git")
    (tmp_path / ".gitconfig").write_text(
        f'[url "{tmp_path}/there.git"]\n\tinsteadOf = https://x-access-token:secret@github.com/someone/fork.git\n'
    )
    for text in ("first", "second"):
        shutil.rmtree(tmp_path / "site", ignore_errors=True)
        (tmp_path / "site" / "_static").mkdir(parents=True)
        (tmp_path / "site" / "_static" / "a.css").write_text(text)
        play("publish: Push the site", tmp_path, TOKEN="secret", GITHUB_SHA="abc", GITHUB_REPOSITORY="someone/fork")
    there = tmp_path / "there.git"
    assert git(there, "ls-tree", "-r", "--name-only", "gh-pages").split() == [".nojekyll", "_static/a.css"]
    assert git(there, "show", "gh-pages:_static/a.css") == "second"
    assert git(there, "log", "--format=%s", "gh-pages") == "Site of abc\n"


@pytest.mark.parametrize("open_ones", ["0", "1"])
def test_a_weekly_failure_opens_one_issue(tmp_path, open_ones):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(f'#!/bin/sh\necho "$@" >>said\n[ "$2" = list ] && echo {open_ones} || true\n')
    (tmp_path / "bin" / "gh").chmod(0o755)
    play("report: Open an issue, unless one is open", tmp_path, RUN="https://example.org/1")
    asked, *created = (tmp_path / "said").read_text().splitlines()
    assert 'in:title "The weekly checks failed"' in asked
    assert [line.endswith("--body What failed: https://example.org/1") for line in created] == [True] * (
        open_ones == "0"
    )


def test_the_preview_is_named(tmp_path):
    summary = tmp_path / "summary"
    play("test: Say where the preview is", tmp_path, SITE="https://example.org/2", GITHUB_STEP_SUMMARY=str(summary))
    assert "(https://example.org/2)" in summary.read_text()


def test_the_form_for_errors_takes_what_the_link_fills_in():
    form = yaml.safe_load(project.read(HUB / "ISSUE_TEMPLATE" / "error.yml"))
    link = project.Remote("github.com", "someone/fork", "main").report("book/a", "A & B")
    assert link.endswith("?template=error.yml&title=Error%3A+A+%26+B&page=A+%26+B+%28book%2Fa%29")
    assert [part["id"] for part in form["body"]] == ["page", "equation", "wanted", "why"]


def test_a_windows_clone_works(tmp_path):
    """Its git would change the ends of lines; its file system has fewer names."""
    names = git(ROOT, "ls-files", "-z").split("\0")[:-1]
    forbidden = re.compile(r'[<>:"|?*\\]|[. ](/|$)|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.|/|$)', re.I)
    bad = [name for name in names if forbidden.search(name) or len(name) > 120]
    assert not bad and len({name.lower() for name in names}) == len(names)
    assert not [line for line in git(ROOT, "ls-files", "--stage").splitlines() if line.startswith("120000")], "links"
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "core.autocrlf", "true")
    for name in (".gitattributes", "binder/start", "tools/build/environment.sh", "book/_static/preview.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "add", "--all")
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts]:
        kept = path.read_bytes()
        path.unlink()
        git(tmp_path, "checkout", "--", path.relative_to(tmp_path).as_posix())
        assert path.read_bytes() == kept, path
