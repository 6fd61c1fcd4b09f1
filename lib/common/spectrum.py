"""The eigenvalues of a covariance or a kernel with their multiplicities: one object, one convention for exponents."""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

ROUNDING = 1e-12  # of an eigenvalue, next to the largest


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Distinct eigenvalues λ_k >= 0 and their multiplicities m_k, k = 1..n.

    Where a function asks for a spectrum, an array of eigenvalues does, each counted once.

    Parameters
    ----------
    eigenvalues : array_like (n,)
        λ_k >= 0, not all zero, in any order and units; above -1e-12 of the largest, the rounding of ``eigvalsh``, a
        negative one counts as zero.
    multiplicities : array_like (n,), optional
        m_k > 0, not necessarily integers (shares do); by default 1.

    Raises
    ------
    ValueError
        If an eigenvalue is negative, all are zero, or a multiplicity is not positive.

    Examples
    --------
    >>> Spectrum([2.0, 0.5], [1, 2]).trace
    3.0
    """

    eigenvalues: Array[" n"]
    multiplicities: Array[" n"] = field(default=None)

    def __post_init__(self):
        values = checks.array("eigenvalues", self.eigenvalues, ndim=1)  # (n,)
        values[(values < 0) & (values > -ROUNDING * values.max(initial=0))] = 0
        values = checks.entries("eigenvalues", values, at_least=0, ndim=1)  # (n,)
        if values.size == 0 or not values.any():
            checks.fail("eigenvalues", "hold at least one that is > 0", self.eigenvalues)
        given = np.ones(values.size) if self.multiplicities is None else self.multiplicities
        counts = checks.entries("multiplicities", given, above=0, shape=values.shape)  # (n,)
        values.flags.writeable = counts.flags.writeable = False
        checks.keep(self, eigenvalues=values, multiplicities=counts)

    @classmethod
    def power_law(cls, levels: int, decay: float) -> "Spectrum":
        """Eigenvalues  λ_k = k^{-decay},  k = 1..n, the largest one.

        Parameters
        ----------
        levels : int
            n >= 1.
        decay : float
            Exponent of the eigenvalues themselves, >= 0: of a covariance with tail index β it is 1 + β.

        Returns
        -------
        Spectrum

        Raises
        ------
        ValueError
            If the last eigenvalue underflows.

        Examples
        --------
        >>> Spectrum.power_law(3, decay=1.0).eigenvalues.tolist() == [1, 1 / 2, 1 / 3]
        True
        """
        rank = np.arange(1, checks.integer("levels", levels) + 1)  # (n,)
        values = rank ** -checks.number("decay", decay, at_least=0)  # (n,)
        if values[-1] == 0:
            checks.fail("decay", "be smaller: the last eigenvalue underflows", decay)
        return cls(values)

    @classmethod
    def read(cls, name: str, value: "Spectrum | ArrayLike") -> "Spectrum":
        """Read an argument that is a spectrum, or an array of eigenvalues, each counted once.

        Parameters
        ----------
        name : str
            The argument, which a complaint names.
        value : Spectrum or array_like (n,)

        Returns
        -------
        Spectrum

        Examples
        --------
        >>> Spectrum.read("spectrum", [1.0, 0.5]).trace
        1.5
        """
        if isinstance(value, cls):
            return value
        try:
            return cls(value)
        except ValueError as problem:
            raise ValueError(f"{name} must be a Spectrum or an array of eigenvalues: {problem}") from None

    @property
    def dimension(self) -> float:
        """N = Σ_k m_k."""
        return float(self.multiplicities.sum())

    @property
    def trace(self) -> float:
        """Σ_k m_k λ_k."""
        return float(self.multiplicities @ self.eigenvalues)

    @property
    def shares(self) -> Array[" n"]:
        """m_k / N."""
        return self.multiplicities / self.multiplicities.sum()

    def scaled(self, factor: float) -> "Spectrum":
        """Multiply every eigenvalue.

        Parameters
        ----------
        factor : float
            > 0.

        Returns
        -------
        Spectrum

        Examples
        --------
        >>> Spectrum([2.0, 1.0]).scaled(0.5).eigenvalues.tolist()
        [1.0, 0.5]
        """
        return Spectrum(self.eigenvalues * checks.number("factor", factor, above=0), self.multiplicities)

    def normalized(self) -> "Spectrum":
        """Divide by the mean eigenvalue  Σ_k m_k λ_k / N,  so that inputs have variance one.

        Returns
        -------
        Spectrum

        Examples
        --------
        >>> Spectrum.power_law(2, decay=2.0).normalized().eigenvalues.tolist()
        [1.6, 0.4]
        """
        return Spectrum(self.eigenvalues / float(self.shares @ self.eigenvalues), self.multiplicities)
