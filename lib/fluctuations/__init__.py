"""Part II: minibatch descent on a least-squares loss, its stationary law, and two networks beyond it (han2021).

``regression.fit`` reads data into a ``Regression``, which averages over all minibatches; a ``descent.Descent`` adds a
learning rate and a minibatch, and has covariances and simulations; ``relations`` compares a covariance with the theory.
"""
