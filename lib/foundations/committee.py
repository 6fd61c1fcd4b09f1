"""Order-parameter theory of a soft committee machine that learns from a stream of Gaussian examples.

A student with K hidden units imitates a teacher with M, g(x) = erf(x/√2): σ = (√M/K) Σ_i g(x_i), ζ = (1/√M) Σ_n g(y_n),
with the fields x_i = J_i·ξ/√N, y_n = B_n·ξ/√N, ξ ~ N(0, 1).  For N → ∞ their covariance obeys closed equations in the
time α = examples/N.
"""

from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt

import numpy as np
from scipy.integrate import DOP853, solve_ivp
from scipy.optimize import root

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.foundations import _committee

__all__ = ["Overlaps", "Trajectory"]

LARGEST = 1e6  # largest overlap: (1 + Q)² - Q² keeps ten digits up to here
STABLE = 4.0  # longest step times fastest rate; the integrator is stable up to 6
COVARIANCE = "the matrix [[student, cross], [crossᵀ, teacher]]"
STEP = 1e-20  # h of a derivative by a complex step, f'(x) = Im f(x + ih)/h: no difference, so rounding alone is left


class Fields:
    """The fields (x, y) as an integrator needs them at every step: their covariance, and room to work in.

    Nothing is checked, and complex overlaps are taken too, by which the equations are differentiated.

    Parameters
    ----------
    student, cross, teacher : ndarray (K, K), (K, M), (M, M)
        Q, R, T, real or complex.

    Examples
    --------
    >>> fields = Fields(np.eye(1), np.eye(1), np.eye(1))
    >>> fields.place(np.zeros((1, 1)), np.zeros((1, 1)))
    >>> round(float(Fields.error(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1))), 6)  # silent: half the variance of ζ
    0.166667
    """

    def __init__(self, student, cross, teacher):
        self.units, teachers = cross.shape
        self.s = np.empty((self.units + teachers,) * 2, np.result_type(student, cross))  # (K+M, K+M)
        self.s[self.units :, self.units :] = teacher
        self.place(student, cross)
        weight = np.empty(len(self.s))  # ζ - σ = Σ_a weight_a g(z_a)
        weight[: self.units], weight[self.units :] = -sqrt(teachers) / self.units, 1 / sqrt(teachers)
        self.weights = np.outer(weight, weight)  # (K+M, K+M)
        self.room = np.empty_like(self.s), np.empty_like(self.s[0])
        self.pull = np.empty_like(self.s[: self.units])  # (K, K+M)

    @staticmethod
    def check(student, cross, teacher, slack):
        """Refuse stacked overlaps that no vectors have: (..., K, K), (..., K, M), (..., M, M).

        Each variance is raised by its part `slack`, the error of a solved trajectory, and 1e-11, its absolute error.
        """
        joint = np.block([[student, cross], [np.swapaxes(cross, -1, -2), teacher]])  # (..., K+M, K+M)
        floor = 1e-11 * min(1.0, max(np.abs(joint).max(), 1e-280))
        joint += floor / (1 + slack) * np.eye(joint.shape[-1])
        checks.symmetric(COVARIANCE, joint, definite="semi", stacked=True, slack=slack)

    @staticmethod
    def error(student, cross, teacher):
        """ε_g (...) of stacked overlaps (..., K, K), (..., K, M), (M, M), as :attr:`Overlaps.generalization_error`."""
        units, teachers = cross.shape[-2:]
        x = np.sqrt(1 + np.diagonal(student, axis1=-2, axis2=-1))  # (..., K)
        y = np.sqrt(1 + np.diagonal(teacher))  # (M,)
        own = np.arcsin(student / (x[..., :, None] * x[..., None, :])).sum(axis=(-2, -1))  # (...)
        shared = np.arcsin(cross / (x[..., :, None] * y)).sum(axis=(-2, -1))  # (...)
        goal = np.arcsin(teacher / np.outer(y, y)).sum()
        return (teachers / units**2 * own + goal / teachers - 2 / units * shared) / pi

    def place(self, student, cross):
        """Put other overlaps Q (K, K), R (K, M) of the same sizes in place."""
        units = self.units
        self.s[:units, :units], self.s[:units, units:], self.s[units:, :units] = student, cross, cross.T

    def drift(self):
        """a (K, M) and G (K, K), as :meth:`Overlaps.drift`."""
        _committee.drift(self.s, self.units, self.pull)
        return self.pull[:, self.units :].copy(), self.pull[:, : self.units].copy()

    def tilted_sum(self, i, j, weights):
        """⟨g'(z_i) g'(z_j) Σ_ab weights_ab g(z_a) g(z_b)⟩, of symmetric `weights` (K+M, K+M)."""
        return _committee.tilted_sum(self.s, i, j, weights, *self.room)

    def noise(self):
        """E (K, K), as :attr:`Overlaps.noise_matrix`."""
        e = np.empty((self.units, self.units), self.s.dtype)  # (K, K)
        for i in range(self.units):
            for j in range(i + 1):
                e[i, j] = e[j, i] = self.tilted_sum(i, j, self.weights)
        return e

    def flow(self, state, learning_rate, second_order):
        """Rates of change with α of Q and R in `state` (K² + KM,), laid out one after the other, as they are there."""
        out = np.empty_like(state)  # (K² + KM,)
        rate = learning_rate / self.units
        _committee.velocity(state, self.s, self.units, self.weights, *self.room, self.pull, rate, second_order, out)
        return out


class _Settling(DOP853):
    """Runge-Kutta steps that stay clear of the limit of stability, where errors as large as the tolerance never decay.

    Each takes one step of a power iteration for the fastest rate.  All units are treated alike, unlike implicitly.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._probe = np.full(self.n, self.n**-0.5)  # (K² + KM,)

    def _step_impl(self):
        small = 1e-7 * (1 + np.linalg.norm(self.y))
        turned = (self.fun(self.t, self.y + small * self._probe) - self.f) / small  # (K² + KM,)
        rate = np.linalg.norm(turned)
        if rate > 0:
            self._probe, self.max_step = turned / rate, STABLE / rate
        return super()._step_impl()


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Order parameters along the learning time; those of several runs are stacked along leading axes.

    Parameters
    ----------
    times : ndarray (n,)
        α = examples / N.  For a single time, a number, no other field has the axis n either.
    student_overlap, cross_overlap, teacher_overlap : ndarray (..., n, K, K), (..., n, K, M), (M, M)
        Q, R, with the student's index first, and T.
    generalization_error : ndarray (..., n)
        ε_g.

    Examples
    --------
    >>> path = Overlaps([[0.25]], [[0.0]], [[1.0]]).solve([0.0, 50.0], learning_rate=1.0)
    >>> path.cross_overlap.round(2).ravel().tolist(), path.overlaps.student.shape
    ([0.0, 1.0], (2, 1, 1))
    """

    times: float | Array[" n"]
    student_overlap: Array["... K K"]
    cross_overlap: Array["... K M"]
    teacher_overlap: Array["M M"]
    generalization_error: float | Array["..."]

    @property
    def overlaps(self) -> "Overlaps":
        """All of them as one stack of Overlaps, with the times on the last but two axes."""
        return Overlaps(self.student_overlap, self.cross_overlap, self.teacher_overlap)


@dataclass(frozen=True, eq=False)
class Overlaps:
    """The order parameters of a committee: covariance [[Q, R], [Rᵀ, T]] of its fields and the teacher's.

    Q = JJᵀ/N,  R = JBᵀ/N,  T = BBᵀ/N.  A stack of students in front of one teacher has leading axes in Q and R, and a
    generalization error for each; the equations of motion are for a single one.

    The error, the noise matrix and `drift` hold for inputs of any covariance; `derivative`, `solve`, `jacobian`,
    `growth_rate` and `fixed_point` are for isotropic inputs, Σ = 1, whatever inputs the overlaps were measured with.
    For a spectrum use :meth:`lib.scaling.structured.ResolvedOverlaps.solve`.

    Saad & Solla (1995) have no factors √M/K, 1/√M in front of their sums: with as many student units as teacher units
    their learning rate is η/K of this one, at the same α and overlaps, and their error M ε_g.

    Parameters
    ----------
    student, cross, teacher : array_like (..., K, K), (..., K, M), (M, M)
        Q, R, with the student's index first, and T: together a covariance, up to the error of a solved trajectory; no
        entry beyond 1e6.

    Attributes
    ----------
    generalization_error : float or ndarray (...)
        ε_g, mean of (ζ - σ)²/2 over fresh inputs (worschech2024 eq. (19), corrected; eq. (94) for K = M):
        ε_g = (1/π) [(M/K²) Σ_ij arcsin(Q_ij/√((1+Q_ii)(1+Q_jj))) + (1/M) Σ_nm arcsin(T_nm/√((1+T_nn)(1+T_mm)))
        - (2/K) Σ_in arcsin(R_in/√((1+Q_ii)(1+T_nn)))].
    noise_matrix : ndarray (K, K)
        E_ij = ⟨g'(x_i) g'(x_j) (ζ - σ)²⟩, which sets the noise that single examples put into Q (eq. (18), corrected).
        With z = (x, y) of covariance S, rows s_i, and ζ - σ = Σ_a w_a g(z_a):  E_ij = 4/(π²√Λ_ij) Σ_ab w_a w_b
        arcsin(S̃_ab/√((1+S̃_aa)(1+S̃_bb))),  Λ_ij = (1+Q_ii)(1+Q_jj) - Q_ij²,  S̃ = S - [(1+S_jj) s_i s_iᵀ + (1+S_ii)
        s_j s_jᵀ - S_ij (s_i s_jᵀ + s_j s_iᵀ)]/Λ_ij.

    Examples
    --------
    >>> round(Overlaps([[0.0]], [[0.0]], [[1.0]]).generalization_error, 6)  # silent: half the teacher's variance
    0.166667
    >>> bool(np.allclose(Overlaps(np.eye(2), np.eye(2), np.eye(2)).noise_matrix, 0, atol=1e-15))
    True
    """

    student: Array["... K K"]
    cross: Array["... K M"]
    teacher: Array["M M"]

    def __post_init__(self):
        bounds = {"at_least": -LARGEST, "at_most": LARGEST}
        q = checks.entries("student", self.student, **bounds)  # (..., K, K)
        if q.ndim < 2 or q.shape[-1] != q.shape[-2] or q.size == 0:
            checks.fail("student", "hold square matrices (K, K), [[Q]] for one unit", f"shape {q.shape}")
        r = checks.entries("cross", self.cross, **bounds)  # (..., K, M)
        t = checks.entries("teacher", self.teacher, **bounds)  # (M, M)
        t = checks.symmetric("teacher", t, definite="semi")
        wanted = q.shape[:-1] + t.shape[:1]
        if r.shape != wanted:
            checks.fail("cross", f"have shape {wanted}, student's index first", f"shape {r.shape}")
        scale = max(np.abs(q).max(), t.max(), 1e-300)
        if not np.allclose(q, np.swapaxes(q, -1, -2), rtol=0, atol=1e-10 * scale):
            checks.fail("student", "be symmetric", self.student)
        # Looser than rounding: a solved trajectory carries the integrator's error.
        Fields.check(q, r, np.broadcast_to(t, r.shape[:-2] + t.shape), 1e-7)
        for part in (q, r, t):
            part.flags.writeable = False
        checks.keep(self, student=q, cross=r, teacher=t)

    def _workspace(self, kind=float):
        if self.student.ndim > 2:
            checks.fail("student", "be one matrix (K, K): the equations are for a single student", "a stack of them")
        return Fields(self.student.astype(kind), self.cross, self.teacher)

    def _equations(self, learning_rate, second_order):
        """The state (K² + KM,), Q and R one after the other, and its velocity as a function, of complex states too."""
        fields = {kind: self._workspace(kind) for kind in (np.float64, np.complex128)}
        learning_rate = checks.number("learning_rate", learning_rate, above=0)
        second_order = checks.boolean("second_order", second_order)
        state = np.concatenate([self.student.ravel(), self.cross.ravel()])  # (K² + KM,)
        return state, lambda state: fields[state.dtype.type].flow(state, learning_rate, second_order)

    def _matrices(self, states):
        """Q and R, or their rates, (..., K, K) and (..., K, M), of states (..., K² + KM)."""
        parts = np.split(states, [self.student.size], axis=-1)
        shapes = self.student.shape, self.cross.shape
        return tuple(part.reshape(*states.shape[:-1], *shape) for part, shape in zip(parts, shapes))

    def _independent(self):
        """Where a state has the upper triangle of Q, and then R, and where it has the same numbers once more; (n,)."""
        i, j = np.triu_indices(len(self.student))
        rest = self.student.size + np.arange(self.cross.size)  # (KM,)
        return np.append(i * len(self.student) + j, rest), np.append(j * len(self.student) + i, rest)

    @cached_property
    def generalization_error(self) -> float | Array["..."]:
        """ε_g, mean of (ζ - σ)²/2 over fresh inputs (worschech2024 eq. (19), corrected)."""
        return checks.plain(Fields.error(self.student, self.cross, self.teacher))

    @cached_property
    def noise_matrix(self) -> Array["K K"]:
        """E_ij = ⟨g'(x_i) g'(x_j) (ζ - σ)²⟩  (worschech2024 eq. (18), corrected)."""
        return self._workspace().noise()

    def drift(self) -> tuple[Array["K M"], Array["K K"]]:
        """The matrices a and G of the student's mean motion, dJ_i ∝ Σ_m a_im B_m - Σ_j G_ij J_j, for any inputs.

        a_im = (2/π)/√((1+Q_ii)(1+T_mm) - R_im²),  b_ij = (2/π)/√((1+Q_ii)(1+Q_jj) - Q_ij²),  G = (M/K) b + diag(d), d_i
        = [Σ_m a_im R_im - (M/K) Σ_j b_ij Q_ij]/(1+Q_ii)  (worschech2024 eq. (18), corrected; eqs. (92), (93) for K =
        M).

        Returns
        -------
        tuple of ndarray (K, M), (K, K)
            a and the symmetric G.

        Examples
        --------
        >>> [part.round(6).item() for part in Overlaps([[1.0]], [[1.0]], [[1.0]]).drift()]  # pull and drag cancel
        [0.367553, 0.367553]
        """
        return self._workspace().drift()

    def derivative(self, learning_rate: float, *, second_order: bool = True) -> tuple[Array["K K"], Array["K M"]]:
        """Rates of change of Q and R with α, exact for N → ∞ at fixed K and M (worschech2024 eq. (18), corrected).

        For isotropic inputs only, Σ = 1:  dR/dα = (η/K)(aT - GR),  dQ/dα = (η/K)(aRᵀ + Raᵀ - GQ - QG) + η²(M/K²) E.

        Parameters
        ----------
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term: gradient flow.

        Returns
        -------
        tuple of ndarray (K, K), (K, M)
            dQ/dα and dR/dα.

        Examples
        --------
        >>> perfect = Overlaps(np.eye(2), np.eye(2), np.eye(2))  # a fixed point
        >>> bool(np.allclose(perfect.derivative(0.5)[1], 0))
        True
        """
        state, velocity = self._equations(learning_rate, second_order)
        return self._matrices(velocity(state))

    def solve(
        self, times: ArrayLike, *, learning_rate: float, second_order: bool = True, rtol: float = 1e-12,
        atol: float = 1e-15,
    ) -> Trajectory:  # fmt: skip
        """Integrate the equations of :meth:`derivative` from α = 0 (eighth-order Runge-Kutta with step control).

        For isotropic inputs only; for a spectrum, :meth:`lib.scaling.structured.ResolvedOverlaps.solve`.

        ε_g is a difference of overlaps: at the default tolerances it is right to 1e-4 of itself above 1e-7, to 1e-2
        above 1e-11, in all our tests, and to 1e-13 below, of either sign.  Only rounding takes a start that is
        symmetric in the units off the plateau.

        Parameters
        ----------
        times : float or array_like (n,)
            α >= 0, increasing.
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term: gradient flow.
        rtol, atol : float
            Relative tolerance, 1e-13 <= rtol < 1, and absolute one, > 0.

        Returns
        -------
        Trajectory

        Raises
        ------
        RuntimeError
            If the integrator gives up.

        Examples
        --------
        >>> Overlaps([[0.25]], [[0.0]], [[1.0]]).solve(50.0, learning_rate=1.0).generalization_error < 1e-7
        True
        """
        grid = checks.times("times", times)  # (n,)
        start, velocity = self._equations(learning_rate, second_order)
        rtol = checks.number("rtol", rtol, at_least=1e-13, below=1)
        atol = checks.number("atol", atol, above=0)
        end = grid[-1] if grid[-1] > 0 else 1.0  # the integrator wants an interval, even to report only its beginning
        options = {"method": _Settling, "t_eval": grid, "rtol": rtol, "atol": atol}
        solution = solve_ivp(lambda _, state: velocity(state), (0, end), start, **options)
        if not solution.success:
            raise RuntimeError(f"the equations could not be integrated to {grid[-1]:g}: {solution.message}")
        q, r = self._matrices(solution.y.T)  # (n, K, K), (n, K, M)
        error = Fields.error(q, r, self.teacher)  # (n,)
        if np.ndim(times) == 0:
            return Trajectory(float(grid[0]), q[0], r[0], self.teacher, float(error[0]))
        return Trajectory(grid, q, r, self.teacher, error)

    def jacobian(self, learning_rate: float, *, second_order: bool = True) -> Array["n n"]:
        """Derivatives of dQ/dα and dR/dα by the n = K(K+1)/2 + KM independent entries of Q and R.

        By a complex step, which leaves rounding alone; for isotropic inputs only.

        Parameters
        ----------
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term: gradient flow.

        Returns
        -------
        ndarray (n, n)
            Rows and columns: upper triangle of Q, then R, each row by row.

        Examples
        --------
        >>> Overlaps([[1]], [[1]], [[1]]).jacobian(0.5).shape
        (2, 2)
        """
        state, velocity = self._equations(learning_rate, second_order)
        columns = []
        for place, twin in np.transpose(self._independent()):
            moved = state.astype(complex)  # (K² + KM,)
            moved.imag[[place, twin]] = STEP
            columns.append(velocity(moved)[self._independent()[0]].imag / STEP)
        return np.stack(columns, axis=1)

    def growth_rate(self, learning_rate: float, *, second_order: bool = True) -> float:
        """Largest real part of the eigenvalues of :meth:`jacobian`, per unit of α: negative at a stable fixed point.

        Parameters
        ----------
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term: gradient flow.

        Returns
        -------
        float

        Examples
        --------
        >>> Overlaps([[1]], [[1]], [[1]]).growth_rate(0.5) < 0  # perfect learning is stable
        True
        """
        return float(np.linalg.eigvals(self.jacobian(learning_rate, second_order=second_order)).real.max())

    def fixed_point(
        self, learning_rate: float, *, second_order: bool = True, relaxation_time: float = 1000.0
    ) -> "Overlaps":
        """Overlaps at which learning from here comes to rest, such as the floor of an unrealizable task.

        Equal units may rest on a saddle, which its growth rate tells; where learning ends in a power law the search may
        fail.  For isotropic inputs only.

        Parameters
        ----------
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term: gradient flow.
        relaxation_time : float
            α > 0 at which the search begins: later than any plateau on the way.

        Returns
        -------
        Overlaps

        Raises
        ------
        RuntimeError
            If there is no rest at overlaps that are a covariance.

        Examples
        --------
        >>> rest = Overlaps(0.1 * np.eye(3), 0.1 * np.eye(3, 2) + 0.01, np.eye(2)).fixed_point(0.5)
        >>> round(rest.generalization_error, 7), rest.growth_rate(0.5) < 0  # three units imitate two
        (6.68e-05, True)
        """
        relaxation_time = checks.number("relaxation_time", relaxation_time, above=0)
        late = self.solve(relaxation_time, learning_rate=learning_rate, second_order=second_order, rtol=1e-7)
        state, velocity = self._equations(learning_rate, second_order)
        place, twin = self._independent()  # (n,), (n,)

        def whole(vector):
            state[place] = state[twin] = vector
            return state

        start = np.concatenate([late.student_overlap.ravel(), late.cross_overlap.ravel()])[place]  # (n,)
        found = root(lambda vector: velocity(whole(vector))[place], start, tol=1e-13).x  # (n,)
        speed = np.abs(velocity(whole(found))).max()
        if not speed <= 1e-12 * learning_rate * max(1.0, np.abs(self.teacher).max()):  # NaN, too, is no rest
            found_none = f"no fixed point found from α = {relaxation_time:g}: a speed of {speed:.1e} is left"
            raise RuntimeError(f"{found_none}; let learning relax for longer")
        try:
            return Overlaps(*self._matrices(whole(found)), self.teacher)
        except ValueError as reason:
            left = f"the search from α = {relaxation_time:g} left the covariance matrices: {reason}"
            raise RuntimeError(left) from reason
