"""two_points_exact.layered against the closed form at one layer, and against descent on deep linear nets with no fitted
number."""

import numpy as np
import pytest
from bad_input import AXIS, COUNT, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.representations import nets, training, two_points, two_points_exact, two_points_limits

X, D = 1.0, 0.8


def start(a, c):
    return [a, c**2, c * (c - D)]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_one_layer_on_either_side_is_the_exact_solution_for_one_output(seed):
    rng = np.random.default_rng(seed)
    dh, v = rng.standard_normal((2, 4)) * np.exp(rng.uniform(-3, 1, (2, 1)))
    alpha, beta, x = np.exp(rng.uniform(-1, 1, 3))
    times = np.linspace(0, 20, 15)
    exact = two_points_exact.one_output(times, dh, v[None], [D], x, alpha, beta)
    found = two_points_exact.layered(times, start(dh @ dh, v @ dh), v @ v, x, D**2, alpha, beta)
    expected = two_points.state(exact.hidden, exact.output, [D])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * max(1, np.abs(expected).max()))


def test_an_aligned_start_is_the_closed_form_of_three_numbers():
    times, a, c = np.linspace(0, 40, 30), 0.02, 0.01
    found = two_points_exact.layered(times, start(a, c), c**2 / a, X, D**2, 0.7, 1.3)
    np.testing.assert_allclose(found, two_points.trajectory(times, start(a, c), X, D**2, 0.7, 1.3), atol=1e-6)


def descended(encoder, decoder, hidden, gradient, rate, duration):
    """Descent on a linear net whose layers have equal amplitudes on either side of the hidden layer `encoder`, and its
    epochs."""
    width, layers = 6, encoder + decoder
    net = nets.Net(1, 1, width, layers - 1, "linear", biases="output")
    directions = np.linalg.qr(np.random.default_rng(3).standard_normal((width, width)))[0]
    ends = [np.ones(1), *(directions[i % width] for i in range(layers - 1)), np.ones(1)]
    sizes = [hidden ** (1 / encoder)] * encoder + [gradient ** (1 / decoder)] * decoder
    weights = tuple(size * np.outer(one, other)[None] for size, one, other in zip(sizes, ends, ends[1:]))
    biases = tuple(np.zeros((1, 1, w.shape[2])) for w in weights)
    epochs = round(duration / rate)
    every = epochs // 20
    inputs, targets = [[-0.5], [0.5]], [[-D / 2], [D / 2]]
    return training.train(
        net, nets.Parameters(weights, biases), inputs, targets, rate, 20 * every, record_every=every, layer=encoder
    )


@pytest.mark.parametrize("encoder, decoder", [(1, 1), (3, 2), (2, 4)])
def test_deep_linear_nets_descend_as_predicted_up_to_first_order_in_the_learning_rate(encoder, decoder):
    hidden, gradient, errors = 0.3, 0.5, []
    for rate in (0.02, 0.01, 0.005):
        run = descended(encoder, decoder, hidden, gradient, rate, 40)
        rates = [rate * layers / 2 for layers in (encoder, decoder)]
        given_ = start(hidden**2, hidden * gradient), gradient**2, X, D**2, *rates
        theory = two_points_exact.layered(run.epochs, *given_, encoder_layers=encoder, decoder_layers=decoder)
        found = np.stack([run.squared_hidden_distance[0], run.squared_output_distance[0], run.alignment[0]], axis=1)
        errors.append(np.abs(found - theory).max())
        assert run.squared_output_distance[0, -1] > 0.9 * D**2
    assert errors[0] < 0.02
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, atol=0.15)
    # with constant rates, or half of those of balanced layers, the same curves are missed by far
    if encoder > 1:
        wrong = two_points_exact.layered(run.epochs, *given_)
        assert np.abs(found - wrong).max() > 20 * errors[-1]


def test_the_end_keeps_what_the_layers_conserve():
    """L₁ (a/X)^{1/L₁} / α-prefactor and the same of V grow by the same amount."""
    encoder, decoder, alpha, beta, a, v, c = 3, 2, 0.7, 1.1, 0.05, 0.3, 0.01
    end = two_points_exact.layered(
        [0.0, 500.0], start(a, c), v, X, D**2, alpha, beta, encoder_layers=encoder, decoder_layers=decoder
    )[1]
    gained = encoder * (end[0] ** (1 / encoder) - a ** (1 / encoder)) / alpha
    final_v = (v ** (1 / decoder) + beta * gained / decoder) ** decoder
    assert end[1] == pytest.approx(D**2, rel=1e-6) and final_v * end[0] >= D**2 * (1 - 1e-6)
    one = two_points_exact.layered([0.0, 500.0], start(a, c), v, X, D**2, alpha, beta)[1, 0]
    tilde = a - alpha / beta * X * v
    high_low = two_points_limits.final_distance(tilde, np.sqrt(alpha / beta * (X * (a * v - c**2) + X * D**2)))
    assert one == pytest.approx(high_low, rel=1e-6)


def test_a_start_that_one_output_cannot_have_is_refused():
    for bad in ([0.0, 0.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.04, 0.1], [1.0, 0.04]):
        with pytest.raises(ValueError, match="^start must "):
            two_points_exact.layered([0.0, 1.0], bad, 1.0, X, D**2, 1.0, 1.0)
    with pytest.raises(ValueError, match="^decoder_gradient must be at least"):
        two_points_exact.layered([0.0, 1.0], start(0.01, 0.5), 1.0, X, D**2, 1.0, 1.0)


CALLS = {
    two_points_exact.layered: {
        "times": [0.0, 1.0],
        "start": start(1.0, 0.1),
        "decoder_gradient": 1.0,
        "input_distance": X,
    }
    | {"target_distance": D**2, "encoder_rate": 1.0, "decoder_rate": 1.0, "encoder_layers": 2, "decoder_layers": 2},
}
BAD = {
    "times": AXIS,
    "start": [[], [1.0], [np.nan, 0, 0], "start", None, 1.0],
    "decoder_gradient": NUMBER,
    "input_distance": NUMBER,
    "target_distance": NUMBER,
    "encoder_rate": NUMBER,
    "decoder_rate": NUMBER,
    "encoder_layers": COUNT,
    "decoder_layers": COUNT,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
