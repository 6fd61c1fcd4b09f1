"""What holds for every public function of lib: its docstring says enough, and what holds arrays is told by identity."""

import dataclasses
import inspect
import pydoc
import re

import pytest
from public import modules, named, own

from lib.criticality import neuron
from lib.fluctuations import regression
from lib.foundations import gaussian, online
from lib.representations import nets

MODULES = modules()
FUNCTIONS = [function for module in MODULES for function in own(module, inspect.isfunction)]


def test_the_list_is_not_empty():
    assert {
        "lib.foundations.stability.near_teacher",
        "lib.foundations.gaussian.erf_i4",
        "lib.foundations.langevin.estimate_covariance",
    } <= {named(f) for f in FUNCTIONS}


@pytest.mark.parametrize("function", FUNCTIONS, ids=named)
def test_docstring_says_what_a_reader_needs(function):
    text = inspect.getdoc(function)
    assert text.splitlines()[0].endswith((".", "?")), f"the first line of {named(function)} is not a sentence"
    assert re.search(r"\bReturns?\b", text), f"{named(function)} does not say what it returns"
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"`{parameter}`|^[\w, *]*\b{parameter}\b[\w, *]*( : |  |$)", text, re.M), (
            f"{named(function)} lacks `{parameter}`"
        )
    assert ">>> " in text, f"{named(function)} has no example"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_help_shows_what_the_module_defines(module):
    """And no function that it imports for itself; what it offers is in its ``__all__``, where it has one."""
    sections = re.split(r"^(?=[A-Z])", pydoc.plain(pydoc.render_doc(module)), flags=re.M)
    listed = [re.findall(r"^    (\w+)\(", text, re.M) for text in sections if text.startswith("FUNCTIONS")]
    assert {vars(module)[name].__module__ for name in sum(listed, [])} <= {module.__name__}
    offered = {found.__name__ for kind in (inspect.isfunction, inspect.isclass) for found in own(module, kind)}
    assert set(getattr(module, "__all__", offered)) >= offered - {"Fields"}  # of committee, for integrators in lib


def test_signatures_are_short():
    assert str(inspect.signature(gaussian.erf_i3)).count("ArrayLike") == 1
    assert len(str(inspect.signature(online.simulate))) < 420


def test_what_holds_arrays_is_compared_and_hashed_by_identity():
    """A generated comparison of arrays, or hash of them, raises."""
    classes = {
        c for module in MODULES for c in vars(module).values() if dataclasses.is_dataclass(c) and isinstance(c, type)
    }
    held = {nets.Parameters}  # tuples of tensors
    while True:  # classes that hold such classes hold arrays too
        more = {
            c for c in classes for field in dataclasses.fields(c) if "ndarray" in str(field.type) or field.type in held
        } - held
        if not more:
            break
        held |= more
    assert {regression.Regression, neuron.Equilibrium} <= held
    assert sorted(str(c) for c in held if c.__eq__ is not object.__eq__ or c.__hash__ is not object.__hash__) == []
    problem = regression.fit([[3.0], [1.0]], [[3.0], [0.0]])
    assert (
        problem == problem
        and problem != regression.fit([[3.0], [1.0]], [[3.0], [0.0]])
        and len({problem, problem}) == 1
    )


def test_what_depends_on_the_processor_says_so():
    """A kernel whose sums may be reordered leaves their order to the vector instructions that there are."""
    reordered = [module for module in MODULES if "fastmath=" in inspect.getsource(module)]
    for module in reordered:
        found = [held for owner in (module, *own(module, inspect.isclass)) if (held := vars(owner).get("simulate"))]
        assert found and all("processor" in simulate.__doc__ for simulate in found), module.__name__


def test_no_module_draws_but_the_services_for_it():
    for module in MODULES:
        if module.__name__ not in ("lib.services.plot", "lib.services.explore"):
            assert "matplotlib" not in inspect.getsource(module), module.__name__
