"""Exponents of the steps in the weight and in the bias that belong to a loss H(y), y = wx + b, by its form alone.

ẇ = -γxH'(y) ∝ g = (y - b)H'(y).  dẇ/dx = (Aẇ + B)^k,  a power law in ẇ shifted by a constant, holds if  k = g''²/(2g''²
- g'g''')  is the same everywhere: for a loss that does not depend on w and b only if it is linear, quadratic or a
logarithm, k = 0, ½ and 2.  Source: kukleva2024, eqs. (6.1), (6.4), section 7, corrected; this recognition is ours.
"""

import numpy as np
import sympy

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def exponents(loss: sympy.Expr, points: ArrayLike, *, bias: float | None = None, shifted: bool = False) -> Array[" P"]:
    """Jacobian exponent of the steps in the bias,  g = H'(y),  or in the weight,  g = (y - b)H'(y).

    Parameters
    ----------
    loss : sympy.Expr
        H(y), in one symbol.
    points : array_like (P,)
        y, where g' ≠ 0, or g'' ≠ 0 with `shifted`.
    bias : float, optional
        b for the steps in the weight; by default those in the bias.
    shifted : bool, optional
        False, the default:  gg''/g'²,  the slope of the density of steps about zero;  True:  g''²/(2g''² - g'g'''),
        that about a shift of its own, infinite where the step is a logarithm of x, 0 where it is straight.

    Returns
    -------
    ndarray (P,)

    Examples
    --------
    >>> y = sympy.Symbol("y")
    >>> exponents(sympy.log(1 - y), [-1.0, 0.5], shifted=False).round(12).tolist()
    [2.0, 2.0]
    >>> exponents(sympy.exp(y), [0.0, 98.0], bias=-1.0, shifted=False).round(6)  # 1 - 1/(1 + y - b)²
    array([0.75  , 0.9999])
    """
    if not isinstance(loss, sympy.Expr) or len(loss.free_symbols) != 1:
        checks.fail("loss", "be a SymPy expression in one symbol", loss)
    points, shifted = checks.array("points", points, ndim=1), checks.boolean("shifted", shifted)  # (P,)
    (y,) = loss.free_symbols
    step = loss.diff(y) * (1 if bias is None else y - sympy.Float(checks.number("bias", bias), 17))
    try:
        values = sympy.lambdify(y, [step.diff(y, order) for order in range(4)], modules=["scipy", "numpy"])
        with np.errstate(all="ignore"):  # what overflows or is no number is refused below
            g, g1, g2, g3 = np.array([np.broadcast_to(value, points.shape) for value in values(points)])  # (P,) each
    except (NotImplementedError, NameError, AttributeError):
        checks.fail("loss", "consist of functions that NumPy or SciPy evaluate", loss)
    one, other = (g2, g1) if shifted else (g1, g1)  # (P,), (P,)
    if not (g.dtype.kind == "f" and np.isfinite([g, g1, g2, g3]).all() and ((one != 0) | (other != 0)).all()):
        checks.fail("points", "lie where the step is real and finite and its exponent is defined", points)
    with np.errstate(divide="ignore", invalid="ignore"):  # ratios and no squares, which underflow in a tail
        return np.where(g2 == 0, 0, 1 / (2 - g1 / g2 * (g3 / g2))) if shifted else g / g1 * (g2 / g1)  # (P,)


def exact_exponent(loss: sympy.Expr, points: ArrayLike, biases: ArrayLike, *, tolerance: float = 1e-8) -> float | None:
    """The exponent k with which a loss gives  dẇ/dx = (Aẇ + B)^k  exactly: the shift-free one, if the same everywhere.

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
    float or None
        None where k is not the same at all points and biases.

    Examples
    --------
    >>> exact_exponent(sympy.Symbol("y") ** 2, np.linspace(0.5, 3, 11), [-1.0, 0.2, 0.9], tolerance=1e-8)
    0.5
    """
    tolerance = checks.number("tolerance", tolerance, above=0)
    biases = checks.array("biases", biases, ndim=1)  # (n,)
    checks.fail_if(np.unique(biases).size < 2, "biases", "hold two or more different numbers", biases)
    found = np.stack([exponents(loss, points, bias=bias, shifted=True) for bias in biases.tolist()])  # (n, P)
    checks.fail_if(np.unique(points).size < 3, "points", "hold three or more different numbers", points)
    same = np.isfinite(found).all() and np.ptp(found) <= tolerance * max(1.0, abs(found.min()))
    return float(found.min() + found.max()) / 2 if same else None
