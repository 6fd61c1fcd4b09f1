"""Part III, Scaling laws: linear students and committees on inputs with a power-law spectrum, exact and simulated."""
