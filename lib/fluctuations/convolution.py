"""A linear network with one convolutional layer,  y ≈ W X,  X = C * x  a valid cross-correlation; both layers learn.

The filter C (c, c) at position j of an image x (L, L) sees the pixels i + j - 1; d = L² pixels, h = (L - c + 1)²
positions, c² taps.  With C held fixed, X takes the place of the inputs in ``regression``.  Numbered equations: han2021,
appendix C.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import least_squares, minimize

from lib.common import checks
from lib.common.compiled import loops
from lib.common.shapes import Array, ArrayLike
from lib.fluctuations._runs import checked_series
from lib.fluctuations._sums import LARGEST

__all__ = ["Layers", "Path"]


def _array(name, value, **form):
    return checks.entries(name, value, at_least=-LARGEST, at_most=LARGEST, **form)


def _taps(taps):
    taps = _array("taps", taps, ndim=2)  # (c, c)
    if taps.shape[0] != taps.shape[1] or taps.size == 0:
        checks.fail("taps", "be a square array (c, c)", f"shape {taps.shape}")
    return taps


def _moments(moment, cross_moment, side):
    moment = checks.symmetric("moment", _array("moment", moment), size=side**2)  # (d, d)
    return moment, _array("cross_moment", cross_moment, shape=(None, side**2))  # (p, d)


def _pixels(length, size):
    """Pixel that tap i sees at position j, i + j - 1 of the source, for sides L and c of image and filter: (h, c²)."""
    windows = sliding_window_view(np.arange(length**2).reshape(length, length), (size, size))  # (o, o, c, c)
    return np.ascontiguousarray(windows.reshape(-1, size**2))


def _hidden_moments(taps, pixels, moment, cross_moment):
    lay = np.zeros((len(pixels), len(moment)))  # (h, d): X = lay x
    lay[np.arange(len(pixels))[:, None], pixels] = taps.ravel()
    return lay @ moment @ lay.T, cross_moment @ lay.T


def _filter_equation(weights, pixels, moment, cross_moment):
    between = moment[pixels[:, :, None, None], pixels]  # (h, c², h, c²): Σ^xx of pixel (j, i) with pixel (k, l)
    p = np.einsum("jk,jikl->il", weights.T @ weights, between)  # (c², c²)
    q = np.einsum("kj,kji->i", weights, cross_moment[:, pixels])  # (c²,)
    return (p + p.T) / 2, q


@dataclass(frozen=True, eq=False)
class Path:
    """One run of minibatch descent on filter and weights, recorded R times, first at the start.

    Parameters
    ----------
    steps : array (R,)
        Integers: steps done when recorded.
    taps, weights : array (R, c, c), (R, p, h)
        C and W.
    taps_moved, weights_moved : array (R,)
        Sums of |step of C|² = ε²‖g_C‖² and |step of W|² = ε²‖g_W‖² over the steps done.
    """

    steps: Array[" R"]
    taps: Array["R c c"]
    weights: Array["R p h"]
    taps_moved: Array[" R"]
    weights_moved: Array[" R"]


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


@dataclass(frozen=True, eq=False)
class Layers:
    """Filter C and weights W of the network  y ≈ W (C * x).

    Parameters
    ----------
    taps : array_like (c, c)
        C.
    weights : array_like (p, h)
        W; the positions are h = o², and images have the side L = o + c - 1.

    Examples
    --------
    >>> layers = Layers([[1, 2], [0, 0]], [[1, 1, 1, 1]])
    >>> layers.side
    3
    """

    taps: Array["c c"]
    weights: Array["p h"]

    def __post_init__(self):
        taps, weights = _taps(self.taps), _array("weights", self.weights, ndim=2)  # (c, c), (p, h)
        if weights.size == 0 or isqrt(weights.shape[1]) ** 2 != weights.shape[1]:
            checks.fail("weights", "have shape (p, o²) with p, o >= 1", f"shape {weights.shape}")
        checks.keep(self, taps=taps, weights=weights)

    @classmethod
    def at_minimum(cls, taps: ArrayLike, moment: ArrayLike, cross_moment: ArrayLike) -> "Layers":
        """A minimum of the loss over filter and weights, and of its curve (ωC, W/ω) the point with ‖C‖ = ‖W‖.

        W = Σ^yX (Σ^XX)⁻¹ is eliminated; at the end eqs. (C8) and (C9) vanish.

        Parameters
        ----------
        taps : array_like (c, c)
            Start, not zero; others may lead to other minima.
        moment, cross_moment : array_like (d, d), (p, d)
            Σ^xx, positive definite, and Σ^yx, not zero, of images of d = L² pixels.

        Returns
        -------
        Layers

        Raises
        ------
        ValueError
            If the search does not end.

        Examples
        --------
        >>> best = Layers.at_minimum([[1.0]], [[1.0]], [[4.0]])
        >>> [round(float(layer[0, 0]), 9) for layer in (best.taps, best.weights)]
        [2.0, 2.0]
        """
        taps = _taps(taps)  # (c, c)
        moment = checks.symmetric("moment", _array("moment", moment), definite="strict")  # (d, d)
        side = isqrt(len(moment))
        wanted = f"have shape (L², L²) with an integer L >= {len(taps)}, the side of the filter"
        checks.fail_if(side < len(taps) or side**2 != len(moment), "moment", wanted, f"shape {moment.shape}")
        cross_moment = _array("cross_moment", cross_moment, shape=(None, len(moment)))  # (p, d)
        for name, value in (("taps", taps), ("cross_moment", cross_moment)):
            checks.fail_if(not value.any(), name, "have an entry that is not zero", value)
        pixels = _pixels(side, len(taps))  # (h, c²)
        inner, outer = np.trace(moment), np.abs(cross_moment).max()  # units, so that the tolerance has none
        moment, cross_moment = moment / inner, cross_moment / outer

        def best(flat):
            size = np.linalg.norm(flat)
            unit = (flat / size).reshape(taps.shape)  # (c, c)
            within, cross = _hidden_moments(unit, pixels, moment, cross_moment)  # (h, h), (p, h)
            return size, unit, np.linalg.solve(within, cross.T).T, cross  # W (p, h)

        def error(flat):
            size, unit, weights, cross = best(flat)
            p, q = _filter_equation(weights, pixels, moment, cross_moment)
            return -(weights * cross).sum() / 2, (p @ unit.ravel() - q) / size

        found = minimize(
            error, (taps / np.abs(taps).max()).ravel(), jac=True, options={"gtol": 1e-10, "maxiter": 10_000}
        )
        # Rounding of the loss stops BFGS; the gradient knows more digits.
        tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
        end = least_squares(lambda flat: error(flat)[1], found.x, method="lm", **tight)
        left = max(np.abs(end.fun).max(), 1e-3 * np.abs(found.jac).max())  # BFGS within 1e-5: no other stationary point
        checks.fail_if(
            left > 1e-8, "taps", "be a start from which the search ends", f"a gradient of {left:.1g} at its end"
        )
        _, unit, weights, _ = best(end.x)
        weights *= outer / inner  # (p, h), back in the units of the moments
        share = np.sqrt(np.linalg.norm(weights))
        return cls(unit * share, weights / share)

    @property
    def side(self) -> int:
        """L, the side of the images, in pixels."""
        return isqrt(self.weights.shape[1]) + len(self.taps) - 1

    @property
    def _seen(self):
        return _pixels(self.side, len(self.taps))

    def _images(self, images):
        images = _array("images", images, shape=(None, self.side, self.side))  # (N, L, L)
        checks.fail_if(len(images) == 0, "images", "hold at least one", f"shape {images.shape}")
        return images

    def _data(self, images, targets):
        images = self._images(images)  # (N, L, L)
        return images, _array("targets", targets, shape=(len(images), len(self.weights)))  # (N, p)

    def rescaled(self, factor: float) -> "Layers":
        """The layers ω C, W/ω, which make the same network.

        Parameters
        ----------
        factor : float
            ω > 0.

        Returns
        -------
        Layers

        Examples
        --------
        >>> Layers([[2.0]], [[3.0]]).rescaled(2.0).weights.tolist()
        [[1.5]]
        """
        factor = checks.number("factor", factor, above=0)
        return Layers(factor * self.taps, self.weights / factor)

    def hidden(self, images: ArrayLike) -> Array["N o o"]:
        """The hidden layer, eq. (C1):  X_j = Σ_i C_i x_{i+j-1}.

        Parameters
        ----------
        images : array_like (N, L, L)

        Returns
        -------
        ndarray (N, o, o)

        Examples
        --------
        >>> layers = Layers([[1, 2], [0, 0]], [[1, 1, 1, 1]])
        >>> layers.hidden([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]).tolist()
        [[[5.0, 8.0], [14.0, 17.0]]]
        """
        windows = sliding_window_view(self._images(images), self.taps.shape, axis=(1, 2))  # (N, o, o, c, c)
        return np.einsum("nabij,ij->nab", windows, self.taps)  # (N, o, o)

    def gradients(self, images: ArrayLike, targets: ArrayLike) -> tuple[Array["c c"], Array["p h"]]:
        """Gradients of  L = (1/2N) Σ_α |y_α - W X_α|²  by filter and weights, of a whole set or of one minibatch.

        ∂L/∂C_i = <Σ_kj e_k W_kj x_{i+j-1}>,  ∂L/∂W = <e Xᵀ>,  e = W X - y,  eqs. (C4), (C9).

        Parameters
        ----------
        images, targets : array_like (N, L, L), (N, p)

        Returns
        -------
        tuple of ndarray (c, c), (p, h)

        Examples
        --------
        >>> [gradient.tolist() for gradient in Layers([[2.0]], [[3.0]]).gradients([[[1.0]]], [[10.0]])]
        [[[-12.0]], [[-8.0]]]
        """
        images, targets = self._data(images, targets)
        windows = images.reshape(len(images), -1)[:, self._seen]  # (N, h, c²)
        hidden = windows @ self.taps.ravel()  # (N, h)
        errors = (hidden @ self.weights.T - targets) / len(images)  # (N, p)
        by_taps = np.tensordot(errors @ self.weights, windows, axes=2)  # (c²,)
        return by_taps.reshape(self.taps.shape), errors.T @ hidden

    def hidden_moments(self, moment: ArrayLike, cross_moment: ArrayLike) -> tuple[Array["h h"], Array["p h"]]:
        """Moments of the hidden layer from those of the images, eqs. (C9), (C10), where (C10) has X for x on the right.

        Σ^XX_ij = Σ_kl C_k C_l Σ^xx_{k+i-1,l+j-1},  Σ^yX_ij = Σ_k C_k Σ^yx_{i,j+k-1}.

        Parameters
        ----------
        moment, cross_moment : array_like (d, d), (p, d)
            Σ^xx and Σ^yx, as a ``Regression`` of images has them.

        Returns
        -------
        tuple of ndarray (h, h), (p, h)
            Σ^XX and Σ^yX.

        Examples
        --------
        >>> [each.tolist() for each in Layers([[2.0]], [[1.0]]).hidden_moments([[3.0]], [[5.0]])]
        [[[12.0]], [[10.0]]]
        """
        return _hidden_moments(self.taps, self._seen, *_moments(moment, cross_moment, self.side))

    def filter_equation(self, moment: ArrayLike, cross_moment: ArrayLike) -> tuple[Array["t t"], Array["c c"]]:
        """The filter's own linear equation,  -∂L/∂C = b_C - A_C C,  at these weights, eqs. (C7), (C8).

        A_C,il = Σ_jk (WᵀW)_jk Σ^xx_{l+k-1,j+i-1} = A_C,li,  b_C,i = Σ_kj W_kj Σ^yx_{k,j+i-1};  P and Q of the source.

        Parameters
        ----------
        moment, cross_moment : array_like (d, d), (p, d)
            Σ^xx and Σ^yx, as a ``Regression`` of images has them.

        Returns
        -------
        tuple of ndarray (c², c²), (c, c)
            A_C and b_C.

        Examples
        --------
        >>> [part.tolist() for part in Layers([[1.0]], [[2.0]]).filter_equation([[3.0]], [[5.0]])]
        [[[12.0]], [[10.0]]]
        """
        moment, cross_moment = _moments(moment, cross_moment, self.side)  # (d, d), (p, d)
        outputs = len(self.weights)
        checks.fail_if(len(cross_moment) != outputs, "cross_moment", f"have {outputs} rows", f"{len(cross_moment)}")
        p, q = _filter_equation(self.weights, self._seen, moment, cross_moment)
        return p, q.reshape(self.taps.shape)

    def descend(
        self, images: ArrayLike, targets: ArrayLike, learning_rate: float, batches: ArrayLike, *, record_every: int = 1
    ) -> Path:
        """Minibatch gradient descent on filter and weights together:  C' = C - ε g_C,  W' = W - ε g_W.

        Each step changes ‖W‖² - ‖C‖² by exactly  ε²(‖g_W‖² - ‖g_C‖²), as <W, g_W> = <C, g_C>.

        Parameters
        ----------
        images, targets : array_like (N, L, L), (N, p)
        learning_rate : float
            ε > 0.
        batches : array_like (steps, m)
            Integers from 0 to N - 1, as ``minibatches.draw`` returns them.
        record_every : int
            One step in so many, a divisor of the number of steps.

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            If the run leaves the floating-point range.

        Examples
        --------
        >>> run = Layers([[2.0]], [[3.0]]).descend([[[1.0]]], [[10.0]], 0.1, [[0], [0]])
        >>> (run.weights**2 - run.taps**2).ravel().round(12).tolist()  # as (5 + run.weights_moved - run.taps_moved)
        [5.0, 4.2, 4.0040448]
        """
        images, targets = self._data(images, targets)
        rate = checks.number("learning_rate", learning_rate, above=0)
        series = checked_series(len(images), batches)  # (steps, m)
        if len(series) % (record_every := checks.integer("record_every", record_every)):
            checks.fail("record_every", f"divide the number of steps, {len(series)}", record_every)
        taps, weights, records = self.taps.copy(), self.weights.copy(), len(series) // record_every + 1
        all_taps, all_weights = (
            np.empty((records, taps.size)),
            np.empty((records, *weights.shape)),
        )  # (R, c²), (R, p, h)
        moved = np.zeros((2, records))  # (2, R)
        all_taps[0], all_weights[0] = taps.ravel(), weights
        data = (images.reshape(len(images), -1), targets, self._seen)  # (N, d), (N, p), (h, c²)
        settings = (rate, series, record_every)
        _descend(taps.ravel(), weights, *data, *settings, all_taps, all_weights, moved)
        if not all(np.isfinite(last).all() for last in (all_taps[-1], all_weights[-1], moved[:, -1])):
            wanted = f"keep the descent inside the floating-point range for {len(series)} steps"
            checks.fail("learning_rate", wanted, learning_rate)
        return Path(record_every * np.arange(records), all_taps.reshape(records, *taps.shape), all_weights, *moved)
