"""sample_gradients and area_formula against forward differentiation of losses that are written out here."""

import numpy as np
import pytest
import torch
from torch.func import grad, jacfwd, vmap

from lib.criticality import area_formula
from lib.criticality import sample_gradients as sg
from lib.criticality.sample_gradients import Model


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)  # torch uses it to differentiate forwards
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("loss", sg.LOSSES)
@pytest.mark.parametrize(("inputs", "width"), [(1, 0), (5, 0), (64, 0), (3, 4), (10, 8)])
def test_jacobians_are_those_of_forward_differentiation(inputs, width, loss, label):
    model, rate, rng = Model(inputs, width=width, loss=loss), 0.3, np.random.default_rng(7)
    q, x = rng.standard_normal(model.size) / np.sqrt(inputs), rng.standard_normal((6, inputs))

    def cost(q, x):
        if width == 0:
            y = q[:-1] @ x + q[-1]
        else:
            weights, biases, readout = (
                q[: width * inputs].reshape(width, inputs),
                q[width * inputs : -width - 1],
                q[-width - 1 : -1],
            )
            y = readout @ torch.tanh(weights @ x + biases) + q[-1]
        f = torch.sigmoid(y)
        return (f - label) ** 2 if loss == "squared" else -torch.log(f if label else 1 - f)

    step = vmap(
        jacfwd(lambda x, q: -rate * grad(cost)(q, x)), in_dims=(0, None)
    )  # (6, K, d), one forward column for each input
    expected = step(torch.from_numpy(x), torch.from_numpy(q)).numpy()
    found = sg.jacobians(model, q, x, np.full(6, label), learning_rate=rate)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    if width == 0 and inputs < 10:  # the closed form, the singular values and the determinant itself
        y, gram = x @ q[:-1] + q[-1], expected.transpose(0, 2, 1) @ expected
        f = 1 / (1 + np.exp(-y))
        slope = f * (1 - f)
        if loss == "cross-entropy":
            h, h1 = f - label, slope
        else:
            h, h1 = 2 * (f - label) * slope, 2 * slope * (slope + (f - label) * (1 - 2 * f))
        areas = np.exp(area_formula.log_area(expected))
        np.testing.assert_allclose(
            areas, np.exp(area_formula.neuron_log_area(x, q[:-1], h, h1, learning_rate=rate)), rtol=1e-10
        )
        np.testing.assert_allclose(areas, np.sqrt(np.linalg.det(gram)), rtol=1e-10)
