"""Part II, Fluctuations: minibatch descent on a least-squares loss as a stochastic process, its relations and its simulators."""
