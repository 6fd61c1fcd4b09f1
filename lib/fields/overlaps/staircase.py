"""The staircase target y = He_1(v) + ε He_3(v): the action of one erf unit.

Every unit sees the action S(m) of the residual bHe_1 + cHe_3, which follows from the density e^{-S} of all units,
:meth:`lib.fields.overlaps.single_index.SingleIndex.saddle`.  Source: ringel2025talk (the deck), slides on the staircase
target and its change of complexity; free lengths are not in it.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.overlaps import _density, _projections


@dataclass(frozen=True, eq=False)
class Action:
    """Action of one unit,  S(m) = dm²/(2σ_w²) - log⟨exp{d A u [b - 2cu]²}⟩  with  u = m²/(1 + 2|w_⊥|² + 2m²).

    The average is over |w_⊥|², or at its fixed value, where  S = d{m²/(2σ_w²) - A u [b - 2cu]²}.

    Parameters
    ----------
    residual : array_like (2,)
        b, c, of He_1 and He_3.
    coupling : float
        A >= 0, that of a :class:`lib.fields.overlaps.single_index.SingleIndex`.  The action keeps its shape as the
        network grows only at fixed  s_a² P_e/d  and  P_e/N.
    dimension : int
        d, and >= 2 for free lengths; for fixed ones 1 gives S/d.
    weight_variance : float
        σ_w² > 0.  By keyword only.
    perpendicular : str
        |w_⊥|² across the teacher's direction: "free", as in networks; "fixed", σ_w², the source's.  By keyword only.

    Examples
    --------
    >>> Action([0.02, -0.3], 100.0, 10, perpendicular="fixed").at([0.0, 1.0, 2.0]).round(3).tolist()
    [0.0, 1.08, -0.629]
    """

    residual: Array["2"]
    coupling: float
    dimension: int
    weight_variance: float = field(default=1.0, kw_only=True)
    perpendicular: str = field(default="free", kw_only=True)

    def __post_init__(self):
        left = checks.entries("residual", self.residual, at_least=-1e50, at_most=1e50, shape=(2,))  # (2,)
        strength = checks.number("coupling", self.coupling, at_least=0, at_most=1e150)
        s = checks.number("weight_variance", self.weight_variance, above=0)
        d = _projections.dimension(self.dimension, self.perpendicular)
        checks.keep(self, residual=left, coupling=strength, dimension=d, weight_variance=s)

    def _all(self):
        slope, free = _density.slope(self.residual, self.coupling), self.perpendicular == "free"
        nodes = _projections.lengths(self.dimension, self.weight_variance, free, slope)  # (K,), (K,)
        return self.residual, self.coupling, self.dimension, self.weight_variance, nodes

    def at(self, overlap: ArrayLike) -> float | Array["..."]:
        """S(m).

        Parameters
        ----------
        overlap : array_like (...)
            m.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> round(Action([0.02, -0.3], 100.0, 10).at(1.0), 3)
        -3.309
        """
        m = checks.array("overlap", overlap)  # (...)
        with np.errstate(over="ignore", invalid="ignore"):
            return checks.plain(checks.finite("overlap", _density.action(m, *self._all())[0]))

    def landau(self) -> Array["3"]:
        """Landau coefficients of  S/d = r_2 m² + r_4 m⁴ + r_6 m⁶ + ...

        At fixed length s = σ_w²:  r_2 = 1/(2s) - Ab²/(1 + 2s),  r_4 = 2Ab(b + 2c)/(1 + 2s)²,  r_6 = -4A(b² + 4bc +
        c²)/(1 + 2s)³.  The first-order route is r_4 < 0 < r_2.  Cut off at m⁶ the action is often unbounded; the full
        one never is.

        Returns
        -------
        ndarray (3,)
            r_2, r_4, r_6.

        Examples
        --------
        >>> Action([0.1, -0.3], 30.0, 1, perpendicular="fixed").landau().round(4).tolist()
        [0.4, -0.3333, 0.0889]
        """
        return _density.landau(*self._all())  # (3,)

    def extrema(self) -> Array[" E"]:
        """Overlaps m > 0 with S'(m) = 0 at fixed length s = σ_w², in closed form; the last is a minimum.

        w²(b - c + cw)(b - 3c + 3cw) = (1 + 2s)/(2sA)  with  w = (1 + 2s)/(1 + 2s + 2m²).

        Returns
        -------
        ndarray (E,)
            In increasing order.

        Examples
        --------
        >>> Action([0.02, -0.3], 100.0, 1, perpendicular="fixed").extrema().round(4).tolist()  # barrier, minimum
        [0.7766, 1.7446]
        """
        checks.one_of("perpendicular", self.perpendicular, ["fixed"])
        return _density.extrema(self.residual, self.coupling, self.weight_variance)  # (E,)
