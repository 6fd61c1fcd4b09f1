"""Part VI, Fields: Bayesian networks and kernels, from the Gaussian limit to learned features, and renormalization."""
