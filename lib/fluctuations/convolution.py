"""A linear network with one convolutional layer:  y ≈ W X  with  X = C * x,  a valid cross-correlation.

The filter C (c, c) slides over an image x (L, L): at position j it sees the pixels i + j - 1, and gives X.  Counted
line by line: d = L² pixels, h = (L - c + 1)² positions, c² taps.  While C is held fixed, X takes the place of the
inputs in :mod:`lib.fluctuations.regression` and all that builds on it; Σ^xx (d, d) and Σ^yx (p, d) of images are its
``moment`` and ``cross_moment``.  ``convolution_descent`` trains both layers.  Numbered equations: han2021, appendix C.
"""

from math import isqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import least_squares, minimize

from lib.common import checks
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
    if len(weights) == 0:
        checks.fail("weights", "have at least one row", f"shape {weights.shape}")
    return taps, weights, images, _array("targets", targets, shape=(len(images), len(weights)))  # (N, p)


def _moments(moment, cross_moment, size=1):
    """Both moments, and the side L of the images."""
    moment = checks.symmetric("moment", _array("moment", moment))  # (d, d)
    side = isqrt(len(moment))
    if side < size or side**2 != len(moment):
        checks.fail("moment", f"have shape (L², L²) with an integer L >= {size}", f"shape {moment.shape}")
    cross_moment = _array("cross_moment", cross_moment, shape=(None, len(moment)))  # (p, d)
    if len(cross_moment) == 0:
        checks.fail("cross_moment", "have at least one row", f"shape {cross_moment.shape}")
    return moment, cross_moment, side


def pixel_table(length, size):
    """Pixel that tap i sees at position j, the index i + j - 1 of the source.

    `length`, `size`: sides L and c of image and filter, 1 <= c <= L.  Returns an int array (h, c²).

    >>> pixel_table(3, 2).tolist()
    [[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]
    """
    size = checks.integer("size", size)
    length = checks.integer("length", length, at_least=size)
    windows = sliding_window_view(np.arange(length**2).reshape(length, length), (size, size))  # (o, o, c, c)
    return windows.reshape(-1, size**2)  # (h, c²)


def apply(taps, images):
    """The hidden layer of images:  X_j = Σ_i C_i x_{i+j-1},  the filter on every place where it fits, without a flip.

    Eq. (C1).  `taps` (c, c): the filter C, c <= L; `images` (N, L, L).  Returns (N, L - c + 1, L - c + 1).

    >>> apply([[1, 2], [0, 0]], [[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]).tolist()
    [[[5.0, 8.0], [14.0, 17.0]]]
    """
    taps = _taps(taps)  # (c, c)
    images = _images(images, len(taps))  # (N, L, L)
    return np.einsum("nabij,ij->nab", sliding_window_view(images, taps.shape, axis=(1, 2)), taps)  # (N, o, o)


def gradients(taps, weights, images, targets):
    """Gradients of  f = (1/2N) Σ_α |y_α - W X_α|²  by filter and weights, of a whole set or of one minibatch.

    With  e = W X - y:  ∂f/∂C_i = <Σ_kj e_k W_kj x_{i+j-1}>,  ∂f/∂W = <e Xᵀ>.  Eqs. (C3) and (C4); the descent has the
    opposite sign.  `taps` (c, c), c <= L; `weights` (p, h); `images` (N, L, L); `targets` (N, p).  Returns both.

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
    """Moments of the hidden layer from those of the images.

    Σ^XX_ij = Σ_kl C_k C_l Σ^xx_{k+i-1,l+j-1},  Σ^yX_ij = Σ_k C_k Σ^yx_{i,j+k-1}  (eqs. (C9) and (C10), where the right
    sides of (C10) have X for x).  With them the weights descend by  -∂f/∂W = -W Σ^XX + Σ^yX.  `taps` (c, c): C, c <= L;
    `moment` (d, d): Σ^xx; `cross_moment` (p, d): Σ^yx.  Returns Σ^XX (h, h) and Σ^yX (p, h).

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

    P_il = Σ_jk (WᵀW)_jk Σ^xx_{l+k-1,j+i-1} = P_li,  Q_i = Σ_kj W_kj Σ^yx_{k,j+i-1}:  eqs. (C7) and (C8); P and Q are
    those of appendix C, not a path ordering and not the circulation.  `weights` (p, h): W, whose h = (L - c + 1)² sets
    c; `moment` (d, d), `cross_moment` (p, d).  Returns P (c², c²), symmetric, semidefinite if Σ^xx is, and Q (c, c).

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

    W = Σ^yX (Σ^XX)⁻¹  is eliminated, and the filter descends by BFGS with the gradient  P C - Q,  whose zero is then
    refined: both right sides, eqs. (C7) and (C9), vanish there.  `taps` (c, c): start of the search, not zero; others
    may lead to other minima.  `moment` (d, d): positive definite; `cross_moment` (p, d): not zero.  Returns C and W.

    >>> [round(float(layer[0, 0]), 9) for layer in minimum([[1.0]], [[1.0]], [[4.0]])]
    [2.0, 2.0]
    """
    taps = _taps(taps)  # (c, c)
    moment, cross_moment, _ = _moments(moment, cross_moment, len(taps))  # (d, d), (p, d)
    checks.symmetric("moment", moment, definite="strict")
    for name, value in (("taps", taps), ("cross_moment", cross_moment)):
        if not value.any():
            checks.fail(name, "have an entry that is not zero", value)
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
    if left > 1e-8:
        checks.fail("taps", "be a start from which the search ends", f"a gradient of {left:.1g} at its end")
    _, unit, weights, _ = best(end.x)
    weights *= outer / inner  # (p, h), back in the units of the moments
    share = np.sqrt(np.linalg.norm(weights))
    return unit * share, weights / share
