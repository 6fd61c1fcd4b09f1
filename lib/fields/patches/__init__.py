"""Networks of patches with shared filters: linear and erf units, their posteriors and how to sample them."""
