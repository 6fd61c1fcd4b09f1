"""What a reader runs: a plain notebook in JupyterLab in dark colors, played to its end."""

import json
import os
import sys
from pathlib import Path

import nbformat
import pytest

from tools.build import project
from tools.release import lab_server, reader
from tools.site import browser

PAGE = "foundations/approaching-the-teacher"


@pytest.fixture
def lab(chromium, tmp_path):
    """A tab with the notebook open in JupyterLab, and its file."""
    folder = tmp_path / "checkout"
    reader.write(project.ROOT, folder / reader.FOLDER)
    config = folder / reader.FOLDER / ".jupyter"
    themes = {"@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Dark"}}
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(themes | quiet))
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(project.ROOT),
        "JUPYTER_CONFIG_PATH": str(config),
    }
    with lab_server.running(tmp_path, folder, environment) as server:
        tab = chromium.new_page(viewport={"width": 1300, "height": 900})
        tab.set_default_timeout(browser.PATIENCE)
        address = f"{server.address}/lab/tree/{reader.FOLDER}/book/{PAGE}.ipynb"
        tab.goto(f"{address}?token={server.token}")
        tab.locator(".jp-Notebook h1").wait_for()
        yield tab, folder / reader.FOLDER / "book" / f"{PAGE}.ipynb"
        tab.close()


def played(tab, path):
    """Run all cells, save, and read the file."""
    state = "state => document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === state"
    tab.wait_for_function(state, arg="idle")  # the kernel is there
    tab.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    tab.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    for one in ("busy", "idle"):
        tab.wait_for_function(state, arg=one)
    before = path.stat().st_mtime_ns
    tab.keyboard.press("Control+s")
    while path.stat().st_mtime_ns == before or not path.read_text(encoding="utf-8").rstrip().endswith("}"):
        tab.wait_for_timeout(100)  # until it is saved to its last brace: the file is emptied first
    return nbformat.read(path, 4)


def test_a_notebook_opens_runs_and_can_be_read(lab):
    tab, path = lab
    assert tab.evaluate("document.body.dataset.jpThemeLight") == "false"
    assert tab.get_by_text("Validate", exact=True).count() == 0, "an instructor's button"
    assert tab.locator(".jp-Notebook a", has_text="Contents").first.is_visible()
    assert tab.locator(".jp-MarkdownOutput", has_text="{").filter(has_text="admonition").count() == 0
    code = [cell for cell in played(tab, path).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code), "not all cells have run"
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    figures = ["".join(out.data["image/svg+xml"]) for out in outputs if "image/svg+xml" in out.get("data", {})]
    assert len(figures) >= 3 and all("fill: #ffffff" in figure for figure in figures), "dark on dark"
