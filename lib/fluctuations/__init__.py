"""Part II, Fluctuations: minibatch descent on a least-squares loss as a stochastic process, and its relations."""
