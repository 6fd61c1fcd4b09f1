"""Speed of training networks: many replicas stacked against one after the other, and against torch's own layers and
autograd.

Run by hand: OMP_NUM_THREADS=1 python benchmarks/nets.py.  Milliseconds of processor time for an epoch of one replica,
two points, full batch.
"""

from dataclasses import replace
from statistics import median
from time import process_time

import torch

from lib.representations import architectures, nets

INPUTS, TARGETS = [[-1.0], [0.0]], [[0.6], [0.6 + 0.5**0.5]]
ROUNDS = 7


def rounds(tasks):
    """Median processor time of every task; the tasks take turns, so that a busy machine troubles all alike."""
    taken = {name: [] for name in tasks}
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            begin = process_time()
            task()
            taken[name].append(process_time() - begin)
    return {name: median(times) for name, times in taken.items()}


def by_autograd(net, learning_rate, epochs, precision):
    """One replica with torch.nn, autograd and torch.optim."""
    dtype, sizes = getattr(torch, precision), [net.inputs] + [net.width] * net.depth
    layers = [part for a, b in zip(sizes, sizes[1:]) for part in (torch.nn.Linear(a, b), torch.nn.LeakyReLU(0.01))]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(net.width, net.outputs)).to(dtype)
    x, y = torch.tensor(INPUTS, dtype=dtype), torch.tensor(TARGETS, dtype=dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for _ in range(epochs):
        optimizer.zero_grad()
        (((model(x) - y) ** 2).mean() / 2).backward()
        optimizer.step()


def main():
    row = architectures.experiment("narrow")
    print(
        f"{'units x layers':<16}{'precision':<11}{'autograd':>10}{'alone':>10}{'stacked':>10}   replicas in the "
        "stack; speed-up of stacking"
    )
    for width, replicas, epochs in ((50, 50, 20), (100, 50, 10), (500, 2, 10)):
        net = replace(row.net, width=width)
        for precision in nets.PRECISIONS:
            start = net.draw(row.gain, replicas, rng=1, precision=precision)
            one = net.draw(row.gain, 1, rng=1, precision=precision)

            def train(parameters, times, net=net):
                net.train(parameters, INPUTS, TARGETS, row.learning_rate, times, record_every=times)

            found = rounds(
                {
                    "autograd": lambda net=net, precision=precision: by_autograd(
                        net, row.learning_rate, 5 * epochs, precision
                    ),
                    "alone": lambda one=one: train(one, 5 * epochs),
                    "stacked": lambda start=start: train(start, epochs),
                }
            )
            slow, alone = (1e3 * found[name] / (5 * epochs) for name in ("autograd", "alone"))
            stacked = 1e3 * found["stacked"] / (epochs * replicas)
            gains = f"{replicas}; {alone / stacked:.1f} ({slow / stacked:.1f} over autograd)"
            print(f"{width:>5} x {net.depth:<8}{precision:<11}{slow:10.3f}{alone:10.3f}{stacked:10.3f}   {gains}")


if __name__ == "__main__":
    main()
