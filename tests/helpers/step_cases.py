"""Step maps that the tests of amplitude, branches and step_density share."""

from hypothesis import strategies as st

from lib.criticality import amplitude, compositions

OPTIONS = {"ReLU + power": {"power": 3.0}}
ALL = [compositions.named(name, **OPTIONS.get(name, {})) for name in compositions.NAMES]
FIGURES = {  # near the learning equilibria for means 0 and 1, deviation 0.25
    "sigmoid + squared": (compositions.named("sigmoid + squared"), 16.0, -8.0),
    "sigmoid + cross-entropy": (compositions.named("sigmoid + cross-entropy"), 16.0, -8.0),
    "ReLU + squared": (compositions.named("ReLU + squared"), 0.929, -0.0144),
    "clip + cross-entropy": (compositions.named("clip + cross-entropy", epsilon=1e-3), 2.25, -0.625),
    "ReLU + quartic": (compositions.named("ReLU + quartic"), 0.818, 0.0807),
}
NAMES = list(FIGURES)


def figure(name, label, **options):
    composition, weight, bias = FIGURES[name]
    return amplitude.step_map(composition, weight, bias, label, **options)


@st.composite
def maps(draw):
    """Any composition, class, observable and data; weights of both signs."""
    weight = draw(st.floats(0.2, 6)) * draw(st.sampled_from([-1, 1]))
    numbers = {
        "mean": draw(st.floats(-1, 1)),
        "deviation": draw(st.floats(0.1, 0.4)),
        "learning_rate": draw(st.floats(0.01, 5)),
    }
    observable = draw(st.sampled_from(amplitude.OBSERVABLES))
    return amplitude.step_map(
        draw(st.sampled_from(ALL)),
        weight,
        draw(st.floats(-2, 2)),
        draw(st.integers(0, 1)),
        observable=observable,
        **numbers,
    )
