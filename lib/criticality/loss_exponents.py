"""Exponents of the steps in the weight and in the bias that belong to a loss H(y), y = wx + b, by its form alone.

ẇ = -γxH'(y) ∝ g = (y - b)H'(y).  dẇ/dx = (Aẇ + B)^k,  a power law in ẇ shifted by a constant, holds if  k = g''²/(2g''²
- g'g''')  is the same everywhere: for a loss that does not depend on w and b only if it is linear, quadratic or a
logarithm, k = 0, ½ and 2.  Source: kukleva2024, eqs. (6.1), (6.4), section 7, corrected; this recognition is ours.
"""

from dataclasses import dataclass

import numpy as np
import sympy

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


@dataclass(frozen=True)
class Classification:
    """Whether the step in the weight obeys  dẇ/dx = (Aẇ + B)^k  exactly, with one k at all points and biases.

    Attributes
    ----------
    exact, exponent : bool, float or None
        The answer, and k if it is yes.
    lowest, highest : float
        Smallest and largest shift-free exponent met.
    """

    exact: bool
    exponent: float | None
    lowest: float
    highest: float


def power_exponent(power: float | ArrayLike) -> float | Array["..."]:
    """Exponent of ḃ for the loss (y + c)^n:  k_b = (n - 2)/(n - 1).

    Parameters
    ----------
    power : float or array_like (...)
        n ≠ 1; 0 for the logarithm.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> power_exponent([-1.0, 0.0, 0.5, 1.5, 2.0, 4.0, 1e9]).round(6).tolist()
    [1.5, 2.0, 3.0, -1.0, 0.0, 0.666667, 1.0]
    """
    n = checks.array("power", power)  # (...)
    checks.fail_if(np.any(n == 1), "power", "not be 1: the steps of a linear loss do not vary", power)
    return checks.plain((n - 2) / (n - 1))


def _derivatives(loss, points, highest):
    """H', H'', ... up to the given order at the points, (highest, P), and the points themselves, (P,)."""
    if not isinstance(loss, sympy.Expr) or len(loss.free_symbols) != 1:
        checks.fail("loss", "be a SymPy expression in one symbol", loss)
    y = checks.array("points", points, ndim=1)  # (P,)
    checks.fail_if(y.size == 0, "points", "hold one number or more", points)
    (symbol,) = loss.free_symbols
    forms = [sympy.diff(loss, symbol, order) for order in range(1, highest + 1)]
    try:
        function = sympy.lambdify(symbol, forms, modules=["scipy", "numpy"])
        with np.errstate(all="ignore"):  # what overflows or is no number is refused below
            values = np.array([np.broadcast_to(value, y.shape) for value in function(y)])  # (highest, P)
    except (NotImplementedError, NameError, AttributeError):
        checks.fail("loss", "consist of functions that NumPy or SciPy evaluate", loss)
    wanted = f"lie where the first {highest} derivatives of the loss {str(loss)[:40]} are real and finite"
    checks.fail_if(values.dtype.kind not in "if" or not np.isfinite(values).all(), "points", wanted, points)
    return values, y


def _steps_in_weight(values, y, bias):
    """The step g = (y - b)H' in units of -γ/w and its first three derivatives, (4, P)."""
    (h, h1, h2, h3), x = values, y - bias  # (P,) each
    return np.stack([x * h, h + x * h1, 2 * h1 + x * h2, 3 * h2 + x * h3])  # (4, P)


def _shift_free(points, first, second, third):
    if np.any((first == 0) & (second == 0)):
        checks.fail("points", "lie where the step in the weight is not stationary", points)
    with np.errstate(divide="ignore"):
        # Ratios and no squares, which underflow in the tail of an exponential; zero where the step is straight in y.
        bent = np.divide(third, second, out=np.zeros(first.shape), where=second != 0)  # (P,)
        bent = first * np.divide(bent, second, out=np.zeros(first.shape), where=second != 0)  # (P,)
        return np.divide(1.0, 2 - bent, out=np.zeros(first.shape), where=second != 0)  # (P,)


def bias_exponents(loss: sympy.Expr, points: ArrayLike) -> Array[" P"]:
    """Exponent of ḃ for a loss:  k_b = H'H'''/H''².

    Parameters
    ----------
    loss : sympy.Expr
        H(y), in one symbol.
    points : array_like (P,)
        y, where H'' ≠ 0.

    Returns
    -------
    ndarray (P,)

    Examples
    --------
    >>> bias_exponents(sympy.log(1 - sympy.Symbol("y")), [-1.0, 0.5]).round(12).tolist()
    [2.0, 2.0]
    """
    (first, second, third), _ = _derivatives(loss, points, 3)
    checks.fail_if(np.any(second == 0), "points", "lie where the second derivative of the loss is not zero", points)
    return (first / second) * (third / second)  # (P,)


def weight_exponents(loss: sympy.Expr, points: ArrayLike, bias: float, *, shifted: bool = True) -> Array[" P"]:
    """Jacobian exponent of the steps in the weight, of  g = (y - b)H'(y).

    Parameters
    ----------
    loss : sympy.Expr
        H(y), in one symbol.
    points : array_like (P,)
        y, where g' ≠ 0.
    bias : float
        b.
    shifted : bool, optional
        True, the default:  g''²/(2g''² - g'g'''),  infinite where ẇ is a logarithm of x;  False:  gg''/g'²,  the slope
        of the density of ẇ about zero.

    Returns
    -------
    ndarray (P,)

    Examples
    --------
    >>> weight_exponents(sympy.exp(sympy.Symbol("y")), [0.0, 98.0], -1.0, shifted=False).round(6)  # 1 - 1/(1 + y - b)²
    array([0.75  , 0.9999])
    """
    values, y = _derivatives(loss, points, 4)  # (4, P), (P,)
    steps, *slopes = _steps_in_weight(values, y, checks.number("bias", bias))  # (P,), three of (P,)
    if checks.boolean("shifted", shifted):
        return _shift_free(points, *slopes)  # (P,)
    checks.fail_if(np.any(slopes[0] == 0), "points", "lie where the step in the weight is not stationary", points)
    return (steps / slopes[0]) * (slopes[1] / slopes[0])  # (P,)


def classify(loss: sympy.Expr, points: ArrayLike, biases: ArrayLike, *, tolerance: float = 1e-8) -> Classification:
    """Does a loss give  dẇ/dx = (Aẇ + B)^k  exactly?  Yes if the shift-free exponent is the same everywhere.

    Three biases decide.  At one a higher power may pass, as (y + c)³ at b = -c, and at two  y³/3 + y, at b = ±√3.

    Parameters
    ----------
    loss : sympy.Expr
        H(y), in one symbol.
    points, biases : array_like (P,), (n,)
        Three or more different y; two or more different b (two suffice to refute).
    tolerance : float, optional
        What counts as rounding of exponents, > 0, by default 1e-8.

    Returns
    -------
    Classification

    Examples
    --------
    >>> classify(sympy.Symbol("y") ** 2, np.linspace(0.5, 3, 11), [-1.0, 0.2, 0.9], tolerance=1e-8).exponent
    0.5
    """
    tolerance = checks.number("tolerance", tolerance, above=0)
    values, y = _derivatives(loss, points, 4)  # (4, P), (P,)
    checks.fail_if(np.unique(y).size < 3, "points", "hold three or more different numbers", points)
    biases = checks.array("biases", biases, ndim=1)  # (n,)
    checks.fail_if(np.unique(biases).size < 2, "biases", "hold two or more different numbers", biases)
    found = np.stack([_shift_free(points, *_steps_in_weight(values, y, bias)[1:]) for bias in biases])  # (n, P)
    lowest, highest = float(found.min()), float(found.max())
    exact = bool(np.isfinite(found).all() and highest - lowest <= tolerance * max(1.0, abs(lowest)))
    return Classification(exact, (lowest + highest) / 2 if exact else None, lowest, highest)
