"""The effective learning rates of a network, read off its gradients without any fit.

Not in the source (vanrossem2024), which fits both rates.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.extras import needs
from lib.common.shapes import Array, ArrayLike
from lib.representations import nets

torch = needs("torch")


@dataclass(frozen=True, eq=False)
class Split:
    """The difference mode Θ_d of the tangent kernel of R replicas, split at a hidden layer."""

    encoder_kernel: Array[" R"]  # part of Θ_d from the parameters up to the hidden layer
    decoder_kernel: Array[" R"]  # part of Θ_d from those behind it
    squared_hidden_distance: Array[" R"]  # a
    squared_decoder_gradient: Array[" R"]  # V = |v|², v the mean of ∂f/∂h at the two points
    encoder_rate: Array[" R"]  # α = η Θ_d^encoder / (2XV)
    decoder_rate: Array[" R"]  # β = η Θ_d^decoder / (2a)


def effective_rates(
    net: nets.Net, parameters: nets.Parameters, inputs: ArrayLike, learning_rate: float, *, layer: int | None = None
) -> Split:
    """Effective learning rates of encoder and decoder at the present parameters of a net with one output.

    Of the tangent kernel Θ of the half loss only  Θ_d = |∇_θ(f_2 - f_1)|²  moves the distance of two points, and the
    theory says  ηΘ_d = 2(βa + αXV),  the first term from the weights behind the hidden layer, the second from those
    before it:  α = ηΘ_d^encoder/(2XV),  β = ηΘ_d^decoder/(2a);  both are η/2 for a linear net with one hidden layer.
    V is noisy where the points have different masks of a leaky ReLU.

    Parameters
    ----------
    net : Net
        With one output, without skip connections.
    parameters : Parameters
        Of R replicas.
    inputs : array_like (2, n)
        Two distinct points.
    learning_rate : float
        η > 0 of the loss with the factor ½.
    layer : int, optional
        The hidden layer, counted from 1, by default ``net.middle``.

    Returns
    -------
    Split

    Raises
    ------
    ValueError
        If a or V is zero.

    Examples
    --------
    >>> net = nets.Net(1, 1, 20, 1, "linear")
    >>> split = effective_rates(net, net.draw(1.0, 1, rng=1), [[-0.5], [0.5]], 0.1, layer=1)
    >>> split.encoder_rate.round(12).tolist()
    [0.05]
    """
    if checks.instance("net", net, nets.Net, "from lib.representations.nets").outputs != 1 or net.skip:
        checks.fail("net", "have one output and no skip connections", net)
    tensors = net._tensors(parameters)
    inputs = checks.array("inputs", inputs, shape=(2, net.inputs))  # (2, n)
    separation = float(((inputs[1] - inputs[0]) ** 2).sum())
    checks.fail_if(separation == 0, "inputs", "be two distinct points", inputs)
    rate = checks.number("learning_rate", learning_rate, above=0)
    layer = net.middle if layer is None else checks.integer("layer", layer)
    if layer >= len(net.layers):
        checks.fail("layer", f"be between 1 and the number of hidden layers, {len(net.layers) - 1}", layer)
    weights, biases = ([each.double().requires_grad_() for each in kind] for kind in tensors)
    values, _ = net._forward(weights, biases, net._stacked(inputs, len(weights[0]), torch.float64))
    apart = (values[-1][:, 1] - values[-1][:, 0]).sum()
    below, *slopes = torch.autograd.grad(apart, [values[layer], *weights, *biases])
    squares = [slope.square().sum((1, 2)).numpy() for slope in slopes]  # (R,) each
    squares = [w + moves * b for w, b, moves in zip(squares, squares[len(weights) :], net.trained_biases)]  # (R,) each
    a = (values[layer][:, 1] - values[layer][:, 0]).detach().square().sum(1).numpy()  # (R,)
    v = ((below[:, 1] - below[:, 0]) / 2).square().sum(1).numpy()  # (R,)
    if not (np.all(a > 0) and np.all(v > 0)):
        wanted = "keep the two hidden vectors apart and the output sensitive to them"
        checks.fail("parameters", wanted, "a replica with a = 0 or V = 0")
    encoder, behind = sum(squares[:layer]), sum(squares[layer:])  # (R,) each
    return Split(encoder, behind, a, v, rate * encoder / (2 * separation * v), rate * behind / (2 * a))
