"""Soft committee machines that learn from inputs of structured covariance: order parameters resolved by eigenspace.

Networks as in :mod:`lib.foundations.committee`, inputs ξ ~ N(0, Σ), where Σ has eigenvalues λ_k with projectors P_k.
Source: worschech2024, eqs. (4) and (18), the same system with coefficients over hundreds of decades.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.foundations import committee
from lib.foundations.committee import STEP, Fields
from lib.scaling import _arguments, _collocation, _frozen


@dataclass(frozen=True, eq=False)
class Path(committee.Trajectory):
    """The overlaps of the fields along the learning time, and those of the eigenspaces.

    Parameters
    ----------
    times, student_overlap, cross_overlap, teacher_overlap, generalization_error : ndarray
        α (n,), Q (..., n, K, K), R (..., n, K, M), T (M, M), ε_g (..., n); an axis of replicas, if any, comes first,
        and for a single time, a number, there is no axis n.
    student_resolved, cross_resolved : ndarray (..., L, K, K), (..., L, K, M)
        Q^k and R^k at the last time.
    student_history, cross_history : ndarray (n, L, K, K), (n, L, K, M), optional
        The same at all times, where they are kept.
    """

    student_resolved: Array["... L K K"]
    cross_resolved: Array["... L K M"]
    student_history: Array["... L K K"] | None = None
    cross_history: Array["... L K M"] | None = None


def _symmetric(name, value):
    value = checks.array(name, value, ndim=3)  # (L, n, n)
    square = value.shape[1] == value.shape[2] and value.size > 0
    if not square or not np.allclose(value, value.mT, rtol=0, atol=1e-10 * np.abs(value).max()):
        checks.fail(name, "hold symmetric matrices", f"shape {value.shape}")
    return value


@dataclass(frozen=True, eq=False)
class ResolvedOverlaps:
    """Overlaps of K students and M teachers in each of L eigenspaces.

    Q^k = J P_k Jᵀ/N,  R^k = J P_k Bᵀ/N,  T^k = B P_k Bᵀ/N;  with the matrices a, G, E of
    :mod:`lib.foundations.committee` at the covariances of the fields,  Q = Σ_k λ_k Q^k  and the same for R and T, they
    obey for N → ∞ at fixed L, with n_k = m_k/N  (worschech2024 eq. (4), and (18) corrected)

        dR^k/dα = (ηλ_k/K)(aT^k - GR^k),   dQ^k/dα = (ηλ_k/K)(aR^kᵀ + R^kaᵀ - GQ^k - Q^kG) + η²(M/K²) λ_k n_k E.

    It unpacks as Q^k, R^k, T^k.

    Parameters
    ----------
    student, cross, teacher : array_like (L, K, K), (L, K, M), (L, M, M)
        Q^k, R^k, T^k, a covariance matrix in each eigenspace.

    Raises
    ------
    ValueError
        If a matrix is not symmetric, or the three are not a covariance.

    Examples
    --------
    >>> one = np.ones((1, 1, 1))
    >>> [bool(abs(rate[0, 0, 0]) < 1e-15) for rate in ResolvedOverlaps(one, one, one).derivative([1.0], 0.5)]  # learned
    [True, True]
    """

    student: Array["L K K"]
    cross: Array["L K M"]
    teacher: Array["L M M"]

    def __post_init__(self):
        q, t = _symmetric("student", self.student), _symmetric("teacher", self.teacher)  # (L, K, K), (L, M, M)
        checks.fail_if(len(t) != len(q), "teacher", f"have {len(q)} matrices, one for each eigenspace", f"{len(t)}")
        r = checks.array("cross", self.cross, shape=(len(q), q.shape[1], t.shape[1]))  # (L, K, M)
        Fields.check(q, r, t, 1e-9)
        checks.keep(self, student=q, cross=r, teacher=t)

    def __iter__(self):
        return iter((self.student, self.cross, self.teacher))

    def _flow(self, spectrum, learning_rate, second_order):
        spectrum = _arguments.spectrum(spectrum, levels=len(self.student))
        rate = checks.number("learning_rate", learning_rate, above=0)
        second_order = checks.boolean("second_order", second_order)
        units = self.student.shape[1]
        return _frozen.Flow(self.teacher, spectrum.eigenvalues, spectrum.shares, rate, second_order, units)

    def derivative(
        self, spectrum: Spectrum | ArrayLike, learning_rate: float, *, second_order: bool = True
    ) -> tuple[Array["L K K"], Array["L K M"]]:
        """Rates of change of Q^k and R^k with α, exact for N → ∞ at fixed L, K, M.

        Parameters
        ----------
        spectrum : Spectrum or array_like (L,)
            λ_k > 0 with mean one and multiplicities m_k, up to a factor.
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term, the noise of single examples.

        Returns
        -------
        dQ^k/dα, dR^k/dα : ndarray (L, K, K), (L, K, M)

        Examples
        --------
        >>> silent = ResolvedOverlaps([[[0.0]]], [[[0.0]]], [[[1.0]]])
        >>> silent.derivative([1.0], 0.5, second_order=False)[1].round(6).item()  # (η/K) a T,  a = (2/π)/√2
        0.225079
        """
        return self._flow(spectrum, learning_rate, second_order).velocity(self.student, self.cross)

    def solve(
        self, times: ArrayLike, spectrum: Spectrum | ArrayLike, learning_rate: float, *, second_order: bool = True,
        tolerance: float = 1e-5,
    ) -> Path:  # fmt: skip
        """Follow the overlaps from α = 0, with thousands of eigenvalues if need be, by collocation of fourth order.

        Errors at the reported times, of Q and R in parts of the largest entry of Q (or one), of Q^k and R^k in parts of
        n_k times that, of ε_g in parts of itself, are of the size of `tolerance`: in all our tests below it, for ε_g
        below three times it (or 1e-13).  Differences among the units are followed however small they are; a start that
        is symmetric in the units never leaves the plateau.

        Parameters
        ----------
        times : float or array_like (n,)
            α = examples / N >= 0, increasing.
        spectrum : Spectrum or array_like (L,)
            λ_k > 0 with mean one and multiplicities m_k, up to a factor.
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term, the noise of single examples.
        tolerance : float
            1e-10 to 1.

        Returns
        -------
        Path
            With the overlaps of the eigenspaces at all times.

        Raises
        ------
        RuntimeError
            If the steps shrink without end.

        Examples
        --------
        >>> path = ResolvedOverlaps([[[0.1]]], [[[0.05]]], [[[1.0]]]).solve([0, 100], [1.0], 1.0)
        >>> bool(path.generalization_error[1] < 1e-6 * path.generalization_error[0])
        True
        """
        grid, flow = checks.times("times", times), self._flow(spectrum, learning_rate, second_order)
        q, r = _collocation.follow(grid, (self.student, self.cross), flow, flow.rate, flow.lam, tolerance)
        students, crosses = (np.tensordot(part, flow.lam, axes=(1, 0)) for part in (q, r))  # (n, K, K), (n, K, M)
        error = Fields.error(students, crosses, flow.teacher)  # (n,)
        path = Path(grid, students, crosses, flow.teacher, error, q[-1], r[-1], q, r)
        with_axis = "student_overlap", "cross_overlap", "generalization_error", "student_history", "cross_history"
        return _arguments.without_axis(times, path, with_axis)

    def jacobian(
        self, spectrum: Spectrum | ArrayLike, learning_rate: float, *, second_order: bool = True
    ) -> Array["n n"]:
        """Derivatives of dQ^k/dα and dR^k/dα by the independent entries of all Q^k and R^k, by a complex step.

        worschech2024, eqs. (100), (112) and (118), are special cases.

        Parameters
        ----------
        spectrum : Spectrum or array_like (L,)
            λ_k > 0 with mean one and multiplicities m_k, up to a factor.
        learning_rate : float
            η > 0.
        second_order : bool
            False leaves out the η² term.

        Returns
        -------
        ndarray (n, n)
            In the coordinates that :func:`coordinates` counts, n = L K(K+1)/2 + L K M.

        Examples
        --------
        >>> rest = ResolvedOverlaps(*np.ones((3, 1, 1, 1)))
        >>> bool(np.linalg.eigvals(rest.jacobian([1.0], 0.5)).real.max() < 0)  # perfect learning is stable
        True
        """
        flow, columns = self._flow(spectrum, learning_rate, second_order), []
        for unit in np.eye(coordinates(self.student, self.cross).size):
            x, y = directions(unit, *self.cross.shape)  # (L, K, K), (L, K, M)
            moved = flow.velocity(self.student + 1j * STEP * x, self.cross + 1j * STEP * y)
            columns.append(coordinates(*(part.imag / STEP for part in moved)))  # (n,)
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Measured:
    """What :func:`measured` reads off data and weights.

    Parameters
    ----------
    spectrum : Spectrum
        λ_k with mean one.
    overlaps : ResolvedOverlaps
    rate : float
        Tr Σ, by which a step on the weights themselves, `lr` of torch.optim.SGD, becomes η = lr · Tr Σ.
    """

    spectrum: Spectrum
    overlaps: ResolvedOverlaps
    rate: float


def measured(inputs: ArrayLike, student: ArrayLike, teacher: ArrayLike) -> Measured:
    """Spectrum and resolved overlaps of the first layers of a student and a teacher on given inputs, in any units.

    The fields are  w·x  of raw weights and inputs, nothing centred, and eigenspaces are those of Σ = <xxᵀ>: the student
    is (√M/K) Σ_i erf(w_i·x/√2), trained example by example on half the squared error.  Directions that no input has are
    left out; then N, of α = examples/N, is the number of the others, ``overlaps``' L.

    Parameters
    ----------
    inputs : array_like (P, N)
        X, one row an example; many more than N for a spectrum that is that of the law.
    student, teacher : array_like (K, N), (M, N)
        First-layer weights, one row a unit.

    Returns
    -------
    Measured

    Examples
    --------
    >>> found = measured([[2.0, 0.0], [0.0, 1.0]], [[0.5, 0.0]], [[0.0, 1.0]])  # λ = 2, 1/2
    >>> found.spectrum.eigenvalues.round(6).tolist(), round(found.rate, 6)
    ([1.6, 0.4], 2.5)
    >>> [fields(part, found.spectrum.eigenvalues).round(6).item() for part in found.overlaps]  # <(w·x)²>
    [0.5, 0.0, 0.5]
    """
    x = checks.table("inputs", inputs)  # (P, N)
    checks.fail_if(not x.any(), "inputs", "differ from zero", x)
    j, b = (checks.array(name, w, shape=(None, x.shape[1])) for name, w in (("student", student), ("teacher", teacher)))
    for name, w in (("student", j), ("teacher", b)):
        checks.fail_if(len(w) == 0, name, "have one unit or more, a row each", f"shape {w.shape}")
    _, size, axes = np.linalg.svd(x / np.sqrt(len(x)), full_matrices=False)  # (r,), (r, N)
    seen = size > 1e-6 * size[0]  # (r,)
    lam, axes = size[seen] ** 2, axes[seen]  # (N',), (N', N)
    count, trace = lam.size, float((size**2).sum())
    joint = np.concatenate([j, b]) @ axes.T * np.sqrt(trace / count)  # (K+M, N')  J and B, in the eigenbasis
    joint = joint.T[:, :, None] * joint.T[:, None, :]  # (N', K+M, K+M)
    k = len(j)
    resolved = ResolvedOverlaps(joint[:, :k, :k], joint[:, :k, k:], joint[:, k:, k:])
    return Measured(Spectrum(lam).normalized(), resolved, trace)


def _gram(random, scales, freedom):
    """Wishart matrix Σ_a z_a z_aᵀ of `freedom` vectors z ~ N(0, diag(scales²)), Bartlett's way if possible."""
    size = len(scales)
    if freedom < size:
        vectors = random.standard_normal((size, freedom))  # (n, m)
    else:
        vectors = np.tril(random.standard_normal((size, size)), -1)  # (n, n)
        vectors[np.diag_indices(size)] = np.sqrt(random.chisquare(freedom - np.arange(size)))
    scaled = scales[:, None] * vectors  # (n, min(n, m))
    return scaled @ scaled.T


def random_overlaps(
    multiplicities: ArrayLike, students: int, teachers: int, rng: Rng, *, student_variance: float = 1.0,
    orthonormal_teachers: bool = False,
) -> ResolvedOverlaps:  # fmt: skip
    """Overlaps in every eigenspace for weights with independent Gaussian entries, drawn from their Wishart law.

    Parameters
    ----------
    multiplicities : array_like (L,)
        Integers m_k >= 1, the dimensions of the eigenspaces, which fix N = Σ_k m_k.
    students, teachers : int
        K, M >= 1.
    rng : int, SeedSequence or Generator
    student_variance : float
        σ_J² >= 0 of the entries of J; those of B have variance one.
    orthonormal_teachers : bool
        True turns the teacher's vectors into orthogonal ones,  T^k = (m_k/N) 1;  then m_k >= M.

    Returns
    -------
    ResolvedOverlaps

    Examples
    --------
    >>> [part.shape for part in random_overlaps([500, 500], 2, 3, rng=1)]
    [(2, 2, 2), (2, 2, 3), (2, 3, 3)]
    """
    counts = checks.entries("multiplicities", multiplicities, at_least=1, at_most=2**53, ndim=1)  # (L,)
    if counts.size == 0 or np.any(counts % 1):
        checks.fail("multiplicities", "hold whole numbers, at least one", multiplicities)
    students, teachers = checks.integer("students", students), checks.integer("teachers", teachers)
    spread = np.sqrt(checks.number("student_variance", student_variance, at_least=0))
    random = checks.generator("rng", rng)
    scales = np.concatenate([np.full(students, spread), np.ones(teachers)])  # (K+M,)
    orthonormal = checks.boolean("orthonormal_teachers", orthonormal_teachers)
    if orthonormal and counts.min() < teachers:
        checks.fail("multiplicities", f"be at least {teachers}, the number of orthonormal teachers", multiplicities)
    joint = np.stack([_gram(random, scales, int(m)) for m in counts]) / counts.sum()  # (L, K+M, K+M)
    q, r, t = joint[:, :students, :students], joint[:, :students, students:], joint[:, students:, students:]
    if orthonormal:
        fractions = (counts / counts.sum())[:, None, None]  # (L, 1, 1)
        turned = np.linalg.solve(np.linalg.cholesky(t), r.mT)  # (L, M, K): B -> √m_k C⁻¹B if T^k = C Cᵀ
        r, t = np.sqrt(fractions) * turned.mT, fractions * np.eye(teachers)
    return ResolvedOverlaps(q, r, t)


def fields(resolved: ArrayLike, eigenvalues: ArrayLike) -> Array["i j"]:
    """Covariance of the fields from resolved overlaps:  Q = Σ_k λ_k Q^k,  Q^(1) in worschech2024 eq. (1).

    Parameters
    ----------
    resolved : array_like (L, ., .)
        Q^k, R^k or T^k.
    eigenvalues : array_like (L,)
        λ_k > 0 of any mean; their squares give Q^(2), and so on.

    Returns
    -------
    ndarray (., .)

    Examples
    --------
    >>> fields([[[0.5]], [[0.25]]], [1.5, 0.5]).tolist()
    [[0.875]]
    """
    eigenvalues = checks.entries("eigenvalues", eigenvalues, above=0, ndim=1)  # (L,)
    return np.tensordot(eigenvalues, checks.array("resolved", resolved, shape=(eigenvalues.size, None, None)), axes=1)


def coordinates(student_direction: ArrayLike, cross_direction: ArrayLike) -> Array[" n"]:
    """The vector that stands for a direction X^k of Q^k and Y^k of R^k:  n = L K(K+1)/2 + L K M  independent entries.

    Parameters
    ----------
    student_direction, cross_direction : array_like (L, K, K), (L, K, M)
        X^k, symmetric, and Y^k.

    Returns
    -------
    ndarray (n,)
        The upper triangles of X^1, ..., X^L row by row, then Y^1, ..., Y^L.

    Examples
    --------
    >>> coordinates([[[1.0, 2.0], [2.0, 3.0]]], [[[4.0], [5.0]]]).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    x = _symmetric("student_direction", student_direction)  # (L, K, K)
    y = checks.array("cross_direction", cross_direction, shape=(*x.shape[:2], None))  # (L, K, M)
    i, j = np.triu_indices(x.shape[1])
    return np.concatenate([x[:, i, j].ravel(), y.ravel()])  # (n,)


def directions(vector: ArrayLike, levels: int, students: int, teachers: int) -> tuple[Array["L K K"], Array["L K M"]]:
    """Inverse of :func:`coordinates`: X^k and Y^k of a vector, such as an eigenvector of the Jacobian.

    Parameters
    ----------
    vector : array_like (n,)
        n = L K(K+1)/2 + L K M.
    levels, students, teachers : int
        L, K, M >= 1.

    Returns
    -------
    X^k, Y^k : ndarray (L, K, K), (L, K, M)

    Examples
    --------
    >>> [part.tolist() for part in directions([1.0, 2.0, 3.0, 4.0, 5.0], 1, 2, 1)]
    [[[[1.0, 2.0], [2.0, 3.0]]], [[[4.0], [5.0]]]]
    """
    sizes = (("levels", levels), ("students", students), ("teachers", teachers))
    levels, students, teachers = (checks.integer(name, value) for name, value in sizes)
    i, j = np.triu_indices(students)
    inner = levels * len(i)
    vector = checks.array("vector", vector, shape=(inner + levels * students * teachers,))  # (n,)
    x = np.empty((levels, students, students))  # (L, K, K)
    x[:, i, j] = x[:, j, i] = vector[:inner].reshape(levels, -1)
    return x, vector[inner:].reshape(levels, students, teachers)
