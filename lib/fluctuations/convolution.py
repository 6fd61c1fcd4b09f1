"""A linear network with one convolutional layer:  y ≈ W X  with  X = C * x,  a valid cross-correlation.

The filter C (c, c) at position j of an image x (L, L) sees the pixels i + j - 1; d = L² pixels, h = (L - c + 1)²
positions, c² taps.  With C held fixed, X takes the place of the inputs in :mod:`lib.fluctuations.regression`, whose
``moment`` and ``cross_moment`` Σ^xx (d, d), Σ^yx (p, d) are those of images.  Numbered equations: han2021, appendix C.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import least_squares, minimize

from lib.common import checks
from lib.common.compiled import loops
from lib.fluctuations.regression import LARGEST


def _array(name, value, **form):
    return checks.entries(name, value, at_least=-LARGEST, at_most=LARGEST, **form)


def _taps(taps):
    taps = _array("taps", taps, ndim=2)
    if taps.shape[0] != taps.shape[1] or taps.size == 0:
        checks.fail("taps", "be a square array (c, c)", f"shape {taps.shape}")
    return taps


def _images(images, size):
    images = _array("images", images, ndim=3)  # (N, L, L)
    if images.shape[1] != images.shape[2] or images.shape[1] < size or len(images) == 0:
        wanted = f"have shape (N, L, L) with N >= 1 and L >= {size}, the side of the filter"
        checks.fail("images", wanted, f"shape {images.shape}")
    return images


def checked_layers(taps, weights, images, targets):
    """Filter, weights and data as float64 arrays, after checking that their shapes fit each other.

    Returns `taps` (c, c), `weights` (p, h), `images` (N, L, L) and `targets` (N, p).

    >>> [array.dtype.name for array in checked_layers([[2]], [[3]], [[[1]]], [[10]])]
    ['float64', 'float64', 'float64', 'float64']
    """
    taps = _taps(taps)  # (c, c)
    images = _images(images, len(taps))  # (N, L, L)
    weights = _array("weights", weights, shape=(None, (images.shape[1] - len(taps) + 1) ** 2))  # (p, h)
    checks.fail_if(len(weights) == 0, "weights", "have at least one row", f"shape {weights.shape}")
    return taps, weights, images, _array("targets", targets, shape=(len(images), len(weights)))  # (N, p)


def _moments(moment, cross_moment, size=1):
    """Both moments, and the side L of the images."""
    moment = checks.symmetric("moment", _array("moment", moment))  # (d, d)
    side = isqrt(len(moment))
    if side < size or side**2 != len(moment):
        checks.fail("moment", f"have shape (L², L²) with an integer L >= {size}", f"shape {moment.shape}")
    cross_moment = _array("cross_moment", cross_moment, shape=(None, len(moment)))  # (p, d)
    checks.fail_if(len(cross_moment) == 0, "cross_moment", "have at least one row", f"shape {cross_moment.shape}")
    return moment, cross_moment, side


def pixel_table(length, size):
    """Pixel that tap i sees at position j, for sides `length` L, `size` c:  i + j - 1 of the source.  Returns (h, c²).

    >>> pixel_table(3, 2).tolist()
    [[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]
    """
    size = checks.integer("size", size)
    length = checks.integer("length", length, at_least=size)
    windows = sliding_window_view(np.arange(length**2).reshape(length, length), (size, size))  # (o, o, c, c)
    return windows.reshape(-1, size**2)  # (h, c²)


def apply(taps, images):
    """The hidden layer of `images` (N, L, L), filter `taps` (c, c), eq. (C1):  X_j = Σ_i C_i x_{i+j-1}.  Returns X.

    >>> apply([[1, 2], [0, 0]], [[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]).tolist()
    [[[5.0, 8.0], [14.0, 17.0]]]
    """
    taps = _taps(taps)  # (c, c)
    images = _images(images, len(taps))  # (N, L, L)
    return np.einsum("nabij,ij->nab", sliding_window_view(images, taps.shape, axis=(1, 2)), taps)  # (N, o, o)


def gradients(taps, weights, images, targets):
    """Gradients of  f = (1/2N) Σ_α |y_α - W X_α|²  by filter and weights, of a whole set or of one minibatch.

    ∂f/∂C_i = <Σ_kj e_k W_kj x_{i+j-1}>,  ∂f/∂W = <e Xᵀ>,  e = W X - y,  eqs. (C4), (C9).  `taps` (c, c); `weights` (p,
    h); `images` (N, L, L); `targets` (N, p).  Returns both.

    >>> [gradient.tolist() for gradient in gradients([[2.0]], [[3.0]], [[[1.0]]], [[10.0]])]
    [[[-12.0]], [[-8.0]]]
    """
    taps, weights, images, targets = checked_layers(taps, weights, images, targets)
    windows = images.reshape(len(images), -1)[:, pixel_table(images.shape[1], len(taps))]  # (N, h, c²)
    hidden = windows @ taps.ravel()  # (N, h)
    errors = (hidden @ weights.T - targets) / len(images)  # (N, p)
    by_taps = np.tensordot(errors @ weights, windows, axes=2)  # (c²,)
    return by_taps.reshape(taps.shape), errors.T @ hidden


def hidden_moments(taps, moment, cross_moment):
    """Moments of the hidden layer from those of the images, eqs. (C9), (C10), where (C10) has X for x on the right.

    Σ^XX_ij = Σ_kl C_k C_l Σ^xx_{k+i-1,l+j-1},  Σ^yX_ij = Σ_k C_k Σ^yx_{i,j+k-1}.  `taps` (c, c): C; `moment` (d, d):
    Σ^xx; `cross_moment` (p, d): Σ^yx.  Returns Σ^XX (h, h), Σ^yX (p, h).

    >>> [moment.tolist() for moment in hidden_moments([[2.0]], [[3.0]], [[5.0]])]
    [[[12.0]], [[10.0]]]
    """
    taps = _taps(taps)  # (c, c)
    moment, cross_moment, length = _moments(moment, cross_moment, len(taps))  # (d, d), (p, d)
    pixels = pixel_table(length, len(taps))  # (h, c²)
    lay = np.zeros((len(pixels), length**2))  # (h, d): X = lay x
    lay[np.arange(len(pixels))[:, None], pixels] = taps.ravel()
    return lay @ moment @ lay.T, cross_moment @ lay.T


def filter_equation(weights, moment, cross_moment):
    """The filter's own linear equation,  -∂f/∂C_i = Q_i - Σ_l P_il C_l,  at given weights.

    P_il = Σ_jk (WᵀW)_jk Σ^xx_{l+k-1,j+i-1} = P_li,  Q_i = Σ_kj W_kj Σ^yx_{k,j+i-1}:  eqs. (C7), (C8); Q is not the
    circulation.  `weights` (p, h): W; `moment` (d, d), `cross_moment` (p, d).  Returns P (c², c²), Q (c, c).

    >>> [part.tolist() for part in filter_equation([[2.0]], [[3.0]], [[5.0]])]
    [[[12.0]], [[10.0]]]
    """
    moment, cross_moment, length = _moments(moment, cross_moment)  # (d, d), (p, d)
    weights = _array("weights", weights, shape=(len(cross_moment), None))  # (p, h)
    places = isqrt(weights.shape[1])
    if not 1 <= places <= length or places**2 != weights.shape[1]:
        checks.fail("weights", f"have o² columns with an integer o from 1 to {length}", f"shape {weights.shape}")
    pixels = pixel_table(length, length - places + 1)  # (h, c²)
    between = moment[pixels[:, :, None, None], pixels]  # (h, c², h, c²): Σ^xx of pixel (j, i) with pixel (k, l)
    p = np.einsum("jk,jikl->il", weights.T @ weights, between)  # (c², c²)
    q = np.einsum("kj,kji->i", weights, cross_moment[:, pixels])  # (c²,)
    return (p + p.T) / 2, q.reshape(length - places + 1, -1)


def minimum(taps, moment, cross_moment):
    """A minimum of the loss over filter and weights, and of its curve (sC, W/s) the point with ‖C‖ = ‖W‖.

    W = Σ^yX (Σ^XX)⁻¹ is eliminated; at the end eqs. (C8) and (C9) vanish.  `taps` (c, c): start, not zero; others may
    lead to other minima.  `moment` (d, d): positive definite; `cross_moment` (p, d): not zero.  Returns C and W.

    >>> [round(float(layer[0, 0]), 9) for layer in minimum([[1.0]], [[1.0]], [[4.0]])]
    [2.0, 2.0]
    """
    taps = _taps(taps)  # (c, c)
    moment, cross_moment, _ = _moments(moment, cross_moment, len(taps))  # (d, d), (p, d)
    checks.symmetric("moment", moment, definite="strict")
    for name, value in (("taps", taps), ("cross_moment", cross_moment)):
        checks.fail_if(not value.any(), name, "have an entry that is not zero", value)
    inner, outer = np.trace(moment), np.abs(cross_moment).max()  # units, so that the tolerance has none
    moment, cross_moment = moment / inner, cross_moment / outer

    def best(flat):
        size = np.linalg.norm(flat)
        unit = (flat / size).reshape(taps.shape)  # (c, c)
        within, cross = hidden_moments(unit, moment, cross_moment)  # (h, h), (p, h)
        return size, unit, np.linalg.solve(within, cross.T).T, cross  # W (p, h)

    def error(flat):
        size, unit, weights, cross = best(flat)
        p, q = filter_equation(weights, moment, cross_moment)
        return -(weights * cross).sum() / 2, (p @ unit.ravel() - q.ravel()) / size

    found = minimize(error, (taps / np.abs(taps).max()).ravel(), jac=True, options={"gtol": 1e-10, "maxiter": 10_000})
    # Rounding of the loss stops BFGS; the gradient knows more digits.
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    end = least_squares(lambda flat: error(flat)[1], found.x, method="lm", **tight)
    left = max(np.abs(end.fun).max(), 1e-3 * np.abs(found.jac).max())  # BFGS within 1e-5: no other stationary point
    checks.fail_if(left > 1e-8, "taps", "be a start from which the search ends", f"a gradient of {left:.1g} at its end")
    _, unit, weights, _ = best(end.x)
    weights *= outer / inner  # (p, h), back in the units of the moments
    share = np.sqrt(np.linalg.norm(weights))
    return unit * share, weights / share


@dataclass(frozen=True, eq=False)
class Descent:
    """One run of minibatch descent on filter and weights, recorded R times, first at the start."""

    steps: np.ndarray  # (R,)  integers: steps done when recorded
    taps: np.ndarray  # (R, c, c)  C
    weights: np.ndarray  # (R, p, h)  W
    taps_moved: np.ndarray  # (R,)  sum of |step of C|² = ε²‖g_C‖² over the steps done
    weights_moved: np.ndarray  # (R,)  sum of |step of W|² = ε²‖g_W‖²


@loops
def _descend(taps, weights, images, targets, pixels, rate, batches, record_every, all_taps, all_weights, moved):
    """Every step in place; both gradients are taken before anything moves."""
    places, size = pixels.shape
    outputs, batch = len(weights), batches.shape[1]
    hidden, back = np.empty(places), np.empty(places)
    by_taps, by_weights = np.zeros(size), np.zeros((outputs, places))  # steps of this minibatch
    far_taps, far_weights = 0.0, 0.0
    for step in range(len(batches)):
        for b in range(batch):
            x, y = images[batches[step, b]], targets[batches[step, b]]
            for j in range(places):
                hidden[j] = 0.0
                back[j] = 0.0
                for i in range(size):
                    hidden[j] += taps[i] * x[pixels[j, i]]
            for k in range(outputs):
                error = -y[k]
                for j in range(places):
                    error += weights[k, j] * hidden[j]
                error *= rate / batch
                for j in range(places):
                    by_weights[k, j] += error * hidden[j]
                    back[j] += error * weights[k, j]
            for j in range(places):
                for i in range(size):
                    by_taps[i] += back[j] * x[pixels[j, i]]
        for i in range(size):
            taps[i] -= by_taps[i]
            far_taps += by_taps[i] ** 2
            by_taps[i] = 0.0
        for k in range(outputs):
            for j in range(places):
                weights[k, j] -= by_weights[k, j]
                far_weights += by_weights[k, j] ** 2
                by_weights[k, j] = 0.0
        if (step + 1) % record_every == 0:
            record = (step + 1) // record_every
            for i in range(size):
                all_taps[record, i] = taps[i]
            for k in range(outputs):
                for j in range(places):
                    all_weights[record, k, j] = weights[k, j]
            moved[0, record], moved[1, record] = far_taps, far_weights


def descend(taps, weights, images, targets, learning_rate, batches, *, record_every=1):
    """Minibatch gradient descent on filter and weights together:  C' = C - ε g_C,  W' = W - ε g_W.

    Each step changes ‖W‖² - ‖C‖² by exactly  ε²(‖g_W‖² - ‖g_C‖²), as <W, g_W> = <C, g_C>.  `taps`, `weights`, `images`,
    `targets`: as in :func:`gradients`; `learning_rate`: ε > 0; `batches` (steps, m): as of ``minibatches.draw``;
    `record_every`: one step in so many, a divisor of the number of steps.  Returns a Descent.

    >>> run = descend([[2.0]], [[3.0]], [[[1.0]]], [[10.0]], 0.1, [[0], [0]])
    >>> (run.weights**2 - run.taps**2).ravel().round(12).tolist()  # as (5 + run.weights_moved - run.taps_moved)
    [5.0, 4.2, 4.0040448]
    """
    taps, weights, images, targets = checked_layers(taps, weights, images, targets)
    rate = checks.number("learning_rate", learning_rate, above=0)
    series = checks.entries("batches", batches, at_least=0, at_most=len(images) - 1, ndim=2)  # (steps, m)
    wanted = f"hold one or more minibatches of samples, integers from 0 to {len(images) - 1}"
    checks.fail_if(series.size == 0 or np.any(series != np.rint(series)), "batches", wanted, batches)
    if len(series) % (record_every := checks.integer("record_every", record_every)):
        checks.fail("record_every", f"divide the number of steps, {len(series)}", record_every)
    records = len(series) // record_every + 1
    all_taps, all_weights = np.empty((records, taps.size)), np.empty((records, *weights.shape))  # (R, c²), (R, p, h)
    moved = np.zeros((2, records))  # (2, R)
    all_taps[0], all_weights[0] = taps.ravel(), weights
    pixels = np.ascontiguousarray(pixel_table(images.shape[1], len(taps)))  # (h, c²)
    data = (images.reshape(len(images), -1), targets, pixels)  # (N, d), (N, p), (h, c²)
    settings = (rate, series.astype(np.int64), record_every)
    _descend(taps.ravel(), weights, *data, *settings, all_taps, all_weights, moved)
    if not all(np.isfinite(last).all() for last in (all_taps[-1], all_weights[-1], moved[:, -1])):
        wanted = f"keep the descent inside the floating-point range for {len(series)} steps"
        checks.fail("learning_rate", wanted, learning_rate)
    return Descent(record_every * np.arange(records), all_taps.reshape(records, *taps.shape), all_weights, *moved)
