"""Wide networks: priors, corrections, adapted kernels, sampling."""
