"""What a reader runs: a plain notebook in JupyterLab, light and dark, played to its end."""

import json
import os
import sys
from pathlib import Path

import nbformat
import pytest

from tools.build import project
from tools.release import lab_server, reader

PAGE = "foundations/approaching-the-teacher"
PATIENCE = 240_000  # milliseconds
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


@pytest.fixture(params=THEMES)
def lab(request, chromium, tmp_path):
    """A tab with the notebook open in JupyterLab of one theme; its file; and which theme."""
    folder = tmp_path / "checkout"
    reader.write(project.ROOT, folder / reader.FOLDER)
    config = folder / reader.FOLDER / ".jupyter"
    themes = {"@jupyterlab/apputils-extension:themes": {"theme": THEMES[request.param]}}
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(themes | quiet))
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(project.ROOT),
        "JUPYTER_CONFIG_PATH": str(config),
    }
    with lab_server.running(tmp_path, folder, environment, 0) as server:
        token = server.headers["Authorization"].removeprefix("token ")
        tab = chromium.new_page(viewport={"width": 1300, "height": 900})
        tab.goto(f"http://127.0.0.1:{server.port}/lab/tree/{reader.FOLDER}/book/{PAGE}.ipynb?token={token}")
        tab.locator(".jp-Notebook h1").wait_for(timeout=PATIENCE)
        yield tab, folder / reader.FOLDER / "book" / f"{PAGE}.ipynb", request.param
        tab.close()


def played(tab, path):
    """Run all cells, save, and read the file."""
    tab.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    tab.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    done = "() => document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'"
    tab.wait_for_timeout(3000)  # until the kernel has begun
    tab.wait_for_function(done, timeout=PATIENCE)
    before = path.stat().st_mtime_ns
    tab.keyboard.press("Control+s")
    for _ in range(100):
        if path.stat().st_mtime_ns != before and path.read_text(encoding="utf-8").rstrip().endswith("}"):
            break  # saved to its last brace: the file is emptied first
        tab.wait_for_timeout(100)
    return nbformat.read(path, 4)


def test_a_notebook_opens_runs_and_can_be_read(lab):
    tab, path, theme = lab
    assert tab.evaluate("document.body.dataset.jpThemeLight") == str(theme == "light").lower()
    assert tab.get_by_text("Validate", exact=True).count() == 0, "an instructor's button"
    assert tab.locator(".jp-Notebook a", has_text="Contents").first.is_visible()
    assert tab.locator(".jp-MarkdownOutput", has_text="{").filter(has_text="admonition").count() == 0
    if theme == "light":
        return
    notebook = played(tab, path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code), "not all cells have run"
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    figures = ["".join(out.data["image/svg+xml"]) for out in outputs if "image/svg+xml" in out.get("data", {})]
    assert len(figures) >= 3 and all("fill: #ffffff" in figure for figure in figures), "dark on dark"
