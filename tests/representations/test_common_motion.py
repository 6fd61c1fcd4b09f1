"""What a solution of the book says: common motion parts the outputs of kinked nets only (ex-universality-share)."""

from dataclasses import replace

import numpy as np
import pytest

from lib.representations import architectures, tasks
from lib.representations.nets import Parameters

x, y = tasks.two_points()


def work(net, now, cut):
    """dy, L/ℓ_eff, and what moving alike has of the encoder's part."""
    after = net.train(now, x, y, 1e-6, 1).parameters

    def moved(weights, biases):
        ends = (net.values(Parameters(*given), x)[-1] for given in ((weights, biases), (now.weights, now.biases)))
        return np.subtract(*(np.diff(end[:, :, 0])[:, 0] for end in ends))

    encoder = moved(after.weights[:cut] + now.weights[cut:], after.biases[:cut] + now.biases[cut:])
    old, new = (net.values(each, x) for each in (now, after))
    shift = now.biases[cut] + (new[cut - 1] - old[cut - 1]).mean(1, keepdims=True) @ now.weights[cut]
    alike = moved(now.weights, (*now.biases[:cut], shift, *now.biases[cut + 1 :]))
    return np.diff(old[-1][:, :, 0])[:, 0], moved(after.weights, after.biases) / encoder, alike / encoder


@pytest.fixture(scope="module", name="jump")
def measured():
    jump = {}
    for name in ("default", "tanh"):
        row = architectures.experiment(name)
        net, moments = replace(row.net, width=50), []
        now = net.draw(row.gain, 4, 11)
        for _ in range(50):
            now = net.train(now, x, y, 3 * row.learning_rate, 30, record_every=30).parameters
            moments.append(work(net, now, 11))
        dy, ratio, alike = np.transpose(moments, (1, 2, 0))  # (4, 50) each
        inside = [(one > np.sqrt(0.02)) & (one < np.sqrt(0.4)) for one in dy]
        grown = [each[kept].max() / each[kept].min() for each, kept in zip(ratio, inside)]
        jump[name] = grown, [np.median(each[kept]) for each, kept in zip(alike, inside)]
    return jump


def test_no_share_of_rates_is_kept_in_a_jump_of_kinked_nets(jump):
    assert max(jump["tanh"][0]) < 1.3 and min(jump["default"][0]) > 2


def test_half_of_what_a_kinked_encoder_does_to_the_outputs_is_to_move_both_points_alike(jump):
    assert min(jump["default"][1]) > max(0.4, 3 * max(jump["tanh"][1]))
