r"""The integrator behind :mod:`lib.scaling.structured` and :mod:`lib.scaling.site_symmetric`: exact flow while a, G and E are frozen, and its step control.

An exponential midpoint rule: a step with the coefficients at its start leads to its middle, one with those of the middle to its end.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1

import numpy as np
from numba import njit

from lib.foundations import committee_matrices

ROUNDING = 1e-14  # of ε_g, a difference of numbers of order one: smaller errors cannot be followed
SPECIALIZATION = 10  # times tolerance: relative change of the differences among units that a step may leave out
SHORTEST = 1e-12  # a step shorter than this part of the time reached means that the equations cannot be followed


def coefficients(q, r, teacher, lam, second_order):
    """a, G, E at the covariances of the fields."""
    student, cross = np.tensordot(lam, q, axes=1), np.tensordot(lam, r, axes=1)  # (K, K), (K, M)
    a, g = committee_matrices.drift(student, cross, teacher)
    return a, g, committee_matrices.noise(student, cross, teacher) if second_order else None


@njit(cache=True)
def decay(x):
    """(1 - e^{-x})/x, one at zero."""
    return -expm1(-x) / x if x != 0.0 else 1.0


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def advance(q, r, t, time, kick, pull, noise, values, frame, new_q, new_r):
    """Exact flow of every eigenspace for frozen a, G, E; `values`, `frame` of G; `pull`, `noise` are a, E in that frame.

    In the frame the units decouple: J'_i decays at the rate γ_i and is driven by (aB)'_i.  The map of the overlaps is a congruence
    plus a positive semidefinite matrix, so they stay a covariance at any step, and the stiffness λ_1/λ_L does not limit it.
    """
    levels, units, teachers = r.shape
    rf, qf, half = np.empty((units, teachers)), np.empty((units, units)), np.empty((units, units))
    driven, keep, gain = np.empty((units, teachers)), np.empty(units), np.empty(units)
    for k in range(levels):
        for i in range(units):
            keep[i] = exp(-time[k] * values[i])
            gain[i] = time[k] * decay(time[k] * values[i])  # (1 - p)/γ, for γ = 0 too
            for n in range(teachers):
                rf[i, n], driven[i, n] = 0.0, 0.0
                for j in range(units):
                    rf[i, n] += frame[j, i] * r[k, j, n]
                for m in range(teachers):
                    driven[i, n] += pull[i, m] * t[k, m, n]
            for h in range(units):
                half[i, h] = 0.0
                for j in range(units):
                    half[i, h] += frame[j, i] * q[k, j, h]
        for i in range(units):
            for h in range(i + 1):
                turned, mixed, mixed_too, square = 0.0, 0.0, 0.0, 0.0
                for j in range(units):
                    turned += half[i, j] * frame[j, h]
                for n in range(teachers):
                    mixed += rf[i, n] * pull[h, n]
                    mixed_too += pull[i, n] * rf[h, n]
                    square += driven[i, n] * pull[h, n]
                total = keep[i] * keep[h] * turned + keep[i] * gain[h] * mixed + gain[i] * keep[h] * mixed_too
                total += gain[i] * gain[h] * square
                total += kick[k] * noise[i, h] * time[k] * decay(time[k] * (values[i] + values[h]))
                qf[i, h] = qf[h, i] = total
        for i in range(units):
            for n in range(teachers):
                driven[i, n] = keep[i] * rf[i, n] + gain[i] * driven[i, n]
        for i in range(units):
            for n in range(teachers):
                new_r[k, i, n] = 0.0
                for j in range(units):
                    new_r[k, i, n] += frame[i, j] * driven[j, n]
            for h in range(units):
                half[i, h] = 0.0
                for j in range(units):
                    half[i, h] += frame[i, j] * qf[j, h]
        for i in range(units):
            for h in range(i + 1):
                total = 0.0
                for j in range(units):
                    total += half[i, j] * frame[h, j]
                new_q[k, i, h] = new_q[k, h, i] = total


@dataclass(frozen=True, eq=False)
class Flow:
    """The flow of :func:`advance` for one problem; a state is the pair Q^k, R^k."""

    t: np.ndarray  # (L, M, M)
    lam: np.ndarray  # (L,)
    fractions: np.ndarray  # (L,)
    rate: float
    second_order: bool

    @cached_property
    def teacher(self):
        return np.tensordot(self.lam, self.t, axes=1)  # (M, M)

    def seen(self, state):
        """Q and R, the covariances of the fields."""
        return tuple(np.tensordot(self.lam, part, axes=1) for part in state)

    def error(self, seen):
        return float(committee_matrices.error(*seen, self.teacher))

    def differences(self, seen):
        """What tells the units apart; on a plateau it is tiny, and it alone decides when the plateau ends."""
        return seen[1] - seen[1].mean(axis=0)  # (K, M)

    def coefficients(self, state):
        return coefficients(*state, self.teacher, self.lam, self.second_order)

    def step(self, state, coefficients, length):
        """Q^k and R^k after a time `length` with a, G, E frozen."""
        a, g, e = coefficients
        q, r = state
        units, teachers = a.shape
        values, frame = np.linalg.eigh(g)  # (K,), (K, K)
        time = self.rate / units * length * self.lam  # (L,)
        kick = self.rate * teachers / units * self.fractions  # (L,)
        noise = np.zeros_like(g) if e is None else frame.T @ e @ frame  # (K, K)
        after = np.empty_like(q), np.empty_like(r)  # (L, K, K), (L, K, M)
        advance(q, r, self.t, time, kick, frame.T @ a, noise, values, np.ascontiguousarray(frame), *after)
        return after


def follow(times, state, flow, length, tolerance):
    """Exponential midpoint rule with step control for a flow as above: what is seen at each time, and the last state."""
    now, here, states = 0.0, flow.seen(state), []
    for target in times:
        while now < target:
            trial = min(length, target - now)
            if not trial > SHORTEST * now:
                raise RuntimeError(
                    f"the equations could not be followed beyond α = {now:g}: take a smaller learning_rate"
                )
            middle = flow.step(state, flow.coefficients(state), trial / 2)
            frozen = flow.coefficients(middle)
            end, other = flow.step(state, frozen, trial), flow.step(middle, frozen, trial / 2)
            there, elsewhere = flow.seen(end), flow.seen(other)
            size = max(1.0, np.abs(there[0]).max())
            apart = max(np.abs(u - v).max() for u, v in zip(there, elsewhere)) / (size * tolerance)
            late, other_late = flow.error(there), flow.error(elsewhere)
            apart = max(apart, abs(late - other_late) / (tolerance * late + ROUNDING))
            split, other_split = flow.differences(there), flow.differences(elsewhere)
            apart = max(
                apart, np.abs(split - other_split).max() / (SPECIALIZATION * tolerance * np.abs(split).max() + ROUNDING)
            )
            if apart <= 1:
                now, state, here = now + trial if trial < target - now else target, end, there
            if apart <= 1 and trial < length:
                continue  # the step was cut to meet a time, so its error says little about the next
            length = trial * min(4.0, max(0.2, 0.9 / np.sqrt(max(apart, 1e-6)))) if np.isfinite(apart) else trial / 5
        states.append(here)
    return [np.stack(part) for part in zip(*states)], state


def first_step(rate, lam, tolerance):
    return min(1.0, tolerance / rate * 100) / lam.max()
