"""Part IV, Representations: two inputs of a network in closed form, and the networks and data that the theory is held against."""
