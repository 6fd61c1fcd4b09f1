"""Part II: minibatch descent on a least-squares loss, its stationary law, and two networks beyond it (han2021).

``regression.fit`` reads data into a ``Regression`` (averages over all minibatches); ``descent.Descent`` is descent on one
(learning rate, minibatch; its covariances, its simulation); ``relations`` compares a covariance with the theory.
"""
