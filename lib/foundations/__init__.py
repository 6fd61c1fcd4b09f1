"""Part I, Foundations: averages over Gaussian variables, Langevin dynamics, committees that learn on line."""
