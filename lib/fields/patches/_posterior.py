"""Checks that the two samplers of patch networks share."""

from lib.common import checks


def examples(inputs, targets):
    """X and y; no rows at all leave the prior."""
    x = checks.array("inputs", inputs, ndim=3)  # (P, N_p, S)
    if 0 in x.shape[1:]:
        checks.fail("inputs", "have one patch or more of one component or more", f"shape {x.shape}")
    return x, checks.array("targets", targets, shape=(len(x),))  # (P, N_p, S), (P,)


def prior(ridge, mean_field, readout_variance, weight_variance=1.0):
    """T/χ, σ_a²/χ and σ_w²."""
    ridge, chi = checks.number("ridge", ridge, above=0), checks.number("mean_field", mean_field, above=0)
    readout = checks.number("readout_variance", readout_variance, above=0)
    return ridge / chi, readout / chi, checks.number("weight_variance", weight_variance, above=0)
