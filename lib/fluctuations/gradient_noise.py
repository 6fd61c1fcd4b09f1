"""The noise of minibatch descent on any torch module, sample by sample, and the spread of the weights that it explains.

At a minimum of the loss over N samples, with Hessian H = <H_α> and gradients g_α of single samples, the deviation of
the weights moves by  V ← (1 - εS)V - εξ,  S and ξ the means of H_α and g_α over a minibatch: to second order in V, the
recursion of :mod:`lib.fluctuations.descent`, which is exact where the loss is quadratic, as that of a linear module is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.extras import needs
from lib.common.shapes import Array, ArrayLike
from lib.fluctuations import _sums

torch, func = needs("torch"), needs("torch.func")

LARGEST = 2**25  # numbers in the Hessians of all samples: a quarter of a gigabyte
_REST = 0.01  # the part of the excess loss that descent may still find
_SWEEPS = 100_000


@dataclass(frozen=True, eq=False)
class GradientNoise:
    """Gradients and Hessians of single samples at the weights of a module, as :func:`measure` returns them.

    Parameters
    ----------
    gradients : ndarray (N, K)
        g_α of all K parameters, in the order of ``module.parameters()``, weight decay included.
    hessians : ndarray (N, K, K)
        H_α.

    Examples
    --------
    >>> one = torch.nn.Linear(1, 1, bias=False)
    >>> _ = torch.nn.init.constant_(one.weight, 1.0)
    >>> noise = measure(one, lambda out, y: ((out - y) ** 2).sum() / 2, [[1.0], [1.0]], [[0.0], [2.0]])
    >>> noise.covariance(0.5, 1, replacement=False).round(4)  # A = S = D = 1: ε / (2 - ε)
    array([[0.3333]])
    """

    gradients: Array["N K"]
    hessians: Array["N K K"]

    def __post_init__(self):
        first = checks.array("gradients", self.gradients, ndim=2)  # (N, K)
        checks.fail_if(len(first) < 2 or first.size == 0, "gradients", "be of two samples or more", f"{first.shape}")
        checks.keep(self, gradients=first)
        checks.keep(self, hessians=checks.array("hessians", self.hessians, shape=(*first.shape, first.shape[1])))

    @property
    def hessian(self) -> Array["K K"]:
        """H, of the loss over all samples."""
        return self.hessians.mean(axis=0)

    def noise(self, batch: int, *, replacement: bool = False) -> Array["K K"]:
        """Covariance of the minibatch gradient:  D = (c/N) Σ_α (g_α - ḡ)(g_α - ḡ)ᵀ,  c = 1/m or (N - m)/(m(N - 1)).

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice; by default not.

        Returns
        -------
        ndarray (K, K)

        Examples
        --------
        >>> GradientNoise([[1.0], [-1.0]], [[[1.0]], [[1.0]]]).noise(1, replacement=True).tolist()
        [[1.0]]
        """
        apart = self.gradients - self.gradients.mean(axis=0)  # (N, K)
        return _sums.batch_variance(len(apart), batch, replacement) * (apart.T @ apart) / len(apart)

    def covariance(self, learning_rate: float, batch: int, *, replacement: bool = False) -> Array["K K"]:
        """Stationary covariance of the weights under plain SGD, every minibatch drawn afresh:  HG + GH = ε(E[SGS] + D).

        Parameters
        ----------
        learning_rate : float
            ε > 0, `lr` of torch.optim.SGD, without momentum.
        batch, replacement : int, bool
            m, and whether a sample may occur twice; by default not.

        Returns
        -------
        ndarray (K, K)
            G; its diagonal is the variance of each weight.

        Raises
        ------
        ValueError
            If the module is not at a minimum, or the spread has no bound at this learning rate.

        Examples
        --------
        >>> GradientNoise([[1.0], [-1.0]], [[[1.0]], [[3.0]]]).covariance(0.1, 1).round(6)  # 2·2G = ε(5G + 1)
        array([[0.028571]])
        """
        rate, noise = checks.number("learning_rate", learning_rate, above=0), self.noise(batch, replacement=replacement)
        variance = _sums.batch_variance(len(self.gradients), batch, replacement)
        curvature, axes = np.linalg.eigh(self.hessian)  # (K,), (K, K)
        wanted = "be at a minimum with curvature in every direction: descend further, or add weight_decay"
        flat = curvature[0] <= 1e-9 * curvature[-1]
        checks.fail_if(flat, "module", wanted, f"a lowest curvature of {curvature[0]:.3g} beside {curvature[-1]:.3g}")
        turned = axes.T @ self.hessians @ axes  # (N, K, K)
        noise, slope = axes.T @ noise @ axes, axes.T @ self.gradients.mean(axis=0)  # (K, K), (K,)
        flow, square = np.add.outer(curvature, curvature), np.outer(curvature, curvature)  # (K, K) twice
        found = np.zeros_like(noise)  # (K, K)
        for _ in range(_SWEEPS):  # every sweep adds what one more step back leaves: the sum grows to its limit, if any
            fed = variance * (turned @ found @ turned).mean(axis=0) + (1 - variance) * square * found  # (K, K)
            last, found = found, rate * (noise + fed) / flow
            if not np.abs(found).max() < 1e6 * (rate * np.abs(noise / flow).max() + 1e-300):
                checks.fail("learning_rate", "be lower: the spread of the weights has no bound there", learning_rate)
            if np.abs(found - last).max() <= 1e-12 * np.abs(found).max():
                break
        else:
            checks.fail("learning_rate", "be further below its threshold for the iteration to end", learning_rate)
        left, excess = (
            slope**2 @ (1 / curvature),
            curvature @ np.diag(found),
        )  # twice the loss to be gained, and by noise
        wanted = "be at a minimum of the loss: descend on all samples first"
        checks.fail_if(left > _REST * excess, "module", wanted, f"a loss that falls by {left / 2:.3g} there")
        return axes @ found @ axes.T


def measure(
    module: "torch.nn.Module", loss: Callable, inputs: ArrayLike, targets: ArrayLike, *, weight_decay: float = 0.0
) -> GradientNoise:
    """Gradients and Hessians of the loss of every sample at the module's present weights, in double precision.

    Parameters
    ----------
    module : torch.nn.Module
        Of K parameters, without dropout or batch normalization that is in training mode.
    loss : callable
        Function (output, target) of one sample -> tensor (): what training averages over a minibatch.  For
        torch.nn.MSELoss of p outputs ``((output - target) ** 2).mean()``; torch.nn.functional.cross_entropy as it is.
    inputs, targets : array_like (N, ...), (N, ...)
        Tensors, arrays or tables of pandas; targets may be classes.
    weight_decay : float
        >= 0, as of torch.optim.SGD.

    Returns
    -------
    GradientNoise

    Examples
    --------
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    >>> entropy = torch.nn.functional.cross_entropy
    >>> noise = measure(net, entropy, np.ones((5, 3)), [0, 1, 1, 0, 1], weight_decay=1e-2)
    >>> noise.gradients.shape, noise.hessian.shape
    ((5, 26), (26, 26))
    """
    checks.instance("module", module, torch.nn.Module, "a network of torch")
    random = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm)
    mixed = [part for part in module.modules() if isinstance(part, random) and part.training]
    wanted = "be without dropout or batch normalization in training mode: call module.eval()"
    checks.fail_if(bool(mixed), "module", wanted, mixed)
    checks.fail_if(not callable(loss), "loss", "be a function of the output and the target of one sample", loss)
    decay = checks.number("weight_decay", weight_decay, at_least=0)
    x, y = _tensor("inputs", inputs), _tensor("targets", targets)  # (N, ...) each
    checks.fail_if(len(x) < 2, "inputs", "hold two samples or more", f"shape {tuple(x.shape)}")
    checks.fail_if(len(y) != len(x), "targets", f"have {len(x)} rows, one a sample", f"shape {tuple(y.shape)}")
    names, shapes = zip(*((name, part.shape) for name, part in module.named_parameters()))
    sizes = [shape.numel() for shape in shapes]
    wanted = f"have at most {int((LARGEST / len(x)) ** 0.5)} parameters for {len(x)} samples: take fewer samples"
    checks.fail_if(len(x) * sum(sizes) ** 2 > LARGEST, "module", wanted, f"{sum(sizes)}")
    q = torch.cat([part.detach().reshape(-1).double() for part in module.parameters()])  # (K,)
    buffers = {name: part.double() if part.is_floating_point() else part for name, part in module.named_buffers()}

    def one(q, x, y):
        parts = {name: part.view(shape) for name, part, shape in zip(names, q.split(sizes), shapes)}
        value = loss(func.functional_call(module, parts | buffers, (x[None],))[0], y)  # ()
        wanted = "give one number for one sample: sum or average over its outputs"
        checks.fail_if(value.numel() != 1, "loss", wanted, f"shape {tuple(value.shape)}")
        return value.reshape(()) + decay / 2 * (q @ q)

    over = {"in_dims": (None, 0, 0)}
    first = func.vmap(func.grad(one), **over)(q, x, y).numpy()  # (N, K)
    size = max(1, 2**22 // sum(sizes) ** 2)
    second = func.vmap(func.jacrev(func.grad(one)), **over, chunk_size=size)(q, x, y).numpy()  # (N, K, K)
    checks.finite("module", second)
    return GradientNoise(checks.finite("module", first), (second + second.swapaxes(1, 2)) / 2)


def _tensor(name, value):
    """Data as a tensor: whole numbers stay classes, others are in double precision."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "to_numpy"):
        value = checks.table(name, value)
    kind = np.asarray(value).dtype.kind
    found = torch.from_numpy(checks.array(name, value))  # (N, ...)
    checks.fail_if(found.ndim == 0, name, "hold one row a sample", value)
    return found.long() if kind in "iu" and name == "targets" else found
