"""``make seeds`` shifts every seed of a page, takes more samples, and names the cells that fail."""

import pytest

from tools.build import project, seeds

PAGE = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
# Title
"""
FIRST = {  # a number that hangs on a seed, in the four ways in which pages use one
    "generator": "np.random.default_rng(5).random()",
    "several numbers": "np.random.default_rng([5, 1]).random()",
    "spawned": "np.random.default_rng(np.random.SeedSequence(5).spawn(2)[1]).random()",
    "the library's children": "np.random.default_rng(children(5, 2)[1]).random()",
    "torch": "float(torch.rand(1, generator=None if torch.manual_seed(5) else None))",
}


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"

    def write(*cells):
        path.write_text(PAGE + "".join(f"\n```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells))
        return path

    return write


def run(path, capfd, offsets=(0,), samples=1):
    failed = seeds.run(path.parent, [path], offsets, samples)
    return failed, capfd.readouterr().out


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The pages lie elsewhere; the tool is this checkout's."""
    kernels = project.kernel_environment
    monkeypatch.setattr(project, "kernel_environment", lambda root: kernels(project.ROOT))


def test_every_kind_of_seed_is_shifted_once(page, capfd):
    imports = "import numpy as np\nimport torch\nfrom lib.common.random import children"
    values = ", ".join(f"{call}" for call in FIRST.values())
    path = page(imports, f"assert not print([{values}])", f"assert False, [{values}]")
    seen = []
    for offset in (0, 1000):
        failed, said = run(path, capfd, (offset,))
        assert failed == 1
        seen.append([float(word) for word in said.split("[")[-1].split("]")[0].split(", ")])
    assert all(before != after for before, after in zip(*seen))
    shifted = page(imports, f"assert False, [{values.replace('5', '1005')}]")
    assert float(run(shifted, capfd)[1].split("[")[-1].split(",")[0]) == seen[1][0]
    again = run(shifted, capfd)[1].split("[")[-1].split("]")[0]
    assert [float(word) for word in again.split(", ")] == seen[1]


def test_a_result_that_hangs_on_a_seed_is_named_and_the_next_cell_runs(page, capfd):
    lucky = "assert np.random.default_rng(1).random() > 0.5, 'unlucky'"
    path = page("import numpy as np", lucky, "print('ran')\nassert np.random.default_rng(1).random() < 1")
    assert run(path, capfd)[0] == 0
    failed, said = run(path, capfd, (0, 1000, 2000, 3000))
    assert failed and "cell 1 (assert np.random" in said and "AssertionError: unlucky" in said
    assert "cell 2" not in said and "page.md +0: " in said


def test_more_samples_are_taken_where_a_cell_asks_the_preset(page, capfd):
    path = page("from lib.services import presets", "assert presets.samples(quick=3, paper=9) == 3")
    assert run(path, capfd)[0] == 0
    assert run(path, capfd, samples=4)[0] == 1
