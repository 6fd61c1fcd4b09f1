"""Checks that several modules of this package share; each names the argument as its callers do."""

from dataclasses import replace

import numpy as np

from lib.common import checks
from lib.common.spectrum import Spectrum


def spectrum(value, *, levels=None, normalized=True, whole=False):
    """The spectrum, if λ_k > 0, of `levels` eigenspaces; `normalized`: Σ_k m_k λ_k = N;  `whole`: m_k are integers."""
    found = Spectrum.read("spectrum", value)
    size = found.eigenvalues.size
    if levels not in (None, size):
        checks.fail("spectrum", f"have {levels} eigenvalues, one for each eigenspace", f"{size} of them")
    if not found.eigenvalues.all():
        checks.fail("spectrum", "have eigenvalues > 0", found.eigenvalues)
    mean = float(found.shares @ found.eigenvalues)
    if normalized and abs(mean - 1) > 1e-7:  # as far as single precision can tell
        wanted = "have mean one, weighted with the multiplicities: take its .normalized()"
        checks.fail("spectrum", wanted, f"mean {mean:.10g}")
    if whole and (np.any(found.multiplicities % 1) or found.dimension > 2**53):
        checks.fail("spectrum", "have whole multiplicities", found.multiplicities)
    return found


def trained(value, size):
    """How many of `size` are trained; all, if nothing is said."""
    value = size if value is None else checks.integer("trained", value)
    if value > size:
        checks.fail("trained", f"be at most {size}, all that there is", value)
    return value


def without_axis(times, result, names, axis=0):
    """The result; without its axis of times in the fields `names`, if `times` is one number."""
    if np.ndim(times) > 0:
        return result
    taken = {name: checks.plain(np.take(getattr(result, name), 0, axis=axis)) for name in names}
    return replace(result, times=float(result.times[0]), **taken)


def whole_steps(times, size):
    """Examples at the times (n,), which must tell them apart."""
    steps = checks.whole_steps("times", times, size)  # (n,)
    if np.any(np.diff(steps) < 1):
        checks.fail("times", f"lie at least one example, 1/N = {1 / size:.3g}, apart", times)
    return steps
