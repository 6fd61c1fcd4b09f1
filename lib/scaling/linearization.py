"""Linearization of the structured equations around any state: one column for every independent entry of Q^k and R^k.

The equations of :mod:`lib.scaling.structured` are analytic wherever |R_in| and |Q_ij| stay below their bounds, at
perfect learning and on the plateau too.  A direction (X^k, Y^k) of (Q^k, R^k) is a vector of  n = L K(K+1)/2 + L K M
coordinates: the upper triangles of X^1, ..., X^L row by row, then Y^1, ..., Y^L.  Source: worschech2024, eqs. (100),
(112) and (118) are special cases.
"""

import numpy as np

from lib.common import checks
from lib.foundations.committee_formulas import STEP
from lib.scaling import _arguments, _frozen


def coordinates(student_direction, cross_direction):
    """The vector that stands for a direction of Q^k and R^k in :func:`jacobian`.

    `student_direction` (L, K, K): X^k, symmetric; `cross_direction` (L, K, M): Y^k.  Returns (n,).

    >>> coordinates([[[1.0, 2.0], [2.0, 3.0]]], [[[4.0], [5.0]]]).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    x = checks.array("student_direction", student_direction, ndim=3)  # (L, K, K)
    square = x.size > 0 and x.shape[1] == x.shape[2]
    if not square or not np.allclose(x, np.swapaxes(x, 1, 2), rtol=0, atol=1e-10 * np.abs(x).max()):
        checks.fail("student_direction", "hold symmetric matrices", f"shape {x.shape}")
    y = checks.array("cross_direction", cross_direction, shape=(*x.shape[:2], None))  # (L, K, M)
    i, j = np.triu_indices(x.shape[1])
    return np.concatenate([x[:, i, j].ravel(), y.ravel()])  # (n,)


def directions(vector, levels, students, teachers):
    """Inverse of :func:`coordinates`: X^k and Y^k of a vector, such as an eigenvector of :func:`jacobian`.

    `vector` (n,); `levels`, `students`, `teachers`: L, K, M >= 1.  Returns X^k (L, K, K) and Y^k (L, K, M).

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


def jacobian(
    student_resolved,
    cross_resolved,
    teacher_resolved,
    eigenvalues,
    learning_rate,
    *,
    multiplicities=None,
    second_order=True,
):
    """Derivatives of dQ^k/dα and dR^k/dα by the independent entries of all Q^k and R^k, by a complex step.

    `student_resolved` (L, K, K): Q^k; `cross_resolved` (L, K, M): R^k; `teacher_resolved` (L, M, M): T^k; `eigenvalues`
    (L,): λ_k > 0 of weighted mean one; `learning_rate`: η > 0; `multiplicities` (L,): m_k up to a factor, by default
    all equal; `second_order`: False leaves out the η² term.  Returns (n, n) in the order of :func:`coordinates`.

    >>> perfect = np.stack([np.eye(2) / 2] * 2)
    >>> growth = np.linalg.eigvals(jacobian(perfect, perfect, perfect, [1.5, 0.5], 0.5)).real
    >>> growth.shape, bool(growth.max() < 0)  # stable
    ((14,), True)
    """
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    q, r, t = _arguments.resolved(student_resolved, cross_resolved, teacher_resolved, lam.size)
    rate = _arguments.learning_rate(learning_rate)
    second_order = checks.boolean("second_order", second_order)
    columns = []
    for unit in np.eye(coordinates(q, r).size):
        x, y = directions(unit, *r.shape)  # (L, K, K), (L, K, M)
        moved = _frozen.velocity(q + 1j * STEP * x, r + 1j * STEP * y, t, lam, fractions, rate, second_order)
        columns.append(coordinates(*(part.imag / STEP for part in moved)))  # (n,)
    return np.stack(columns, axis=1)
