"""lib.services.presets: one environment variable decides, and a misspelt name is refused."""

import pytest

from lib.services import presets


def test_without_the_variable_the_preset_is_quick(monkeypatch):
    monkeypatch.delenv(presets.ENVIRONMENT, raising=False)
    assert presets.current() == "quick"
    assert presets.choose(quick=1, paper=2, beyond=3) == 1


@pytest.mark.parametrize("name, chosen", [("quick", 1), ("paper", 2), ("beyond", 3)])
def test_the_variable_decides(monkeypatch, name, chosen):
    monkeypatch.setenv(presets.ENVIRONMENT, name)
    assert presets.current() == name
    assert presets.choose(quick=1, paper=2, beyond=3) == chosen


def test_beyond_falls_back_on_the_paper(monkeypatch):
    monkeypatch.setenv(presets.ENVIRONMENT, "beyond")
    assert presets.choose(quick=1, paper=2) == 2


@pytest.mark.parametrize("name", ["", "Paper", "fast"])
def test_another_name_is_refused(monkeypatch, name):
    monkeypatch.setenv(presets.ENVIRONMENT, name)
    for call in (presets.current, lambda: presets.choose(quick=1, paper=2)):
        with pytest.raises(ValueError, match=f"^{presets.ENVIRONMENT} must be one of quick, paper, beyond"):
            call()


def test_numbers_of_samples_are_multiplied(monkeypatch):
    assert presets.samples(quick=2, paper=5) == 2
    monkeypatch.setenv(presets.SAMPLES, "4")
    assert presets.samples(quick=2, paper=5) == 8 and presets.choose(quick=2, paper=5) == 2
    assert presets.samples(quick=(1, 2), paper=0) == (4, 8)
    assert presets.samples(quick={"a": 3}, paper=0) == {"a": 12}
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv(presets.SAMPLES, wrong)
        with pytest.raises(ValueError, match=f"^{presets.SAMPLES} must be"):
            presets.samples(quick=2, paper=5)
