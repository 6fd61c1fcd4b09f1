"""Part IV, Representations: two inputs of a network in closed form, and networks and data to test it on."""
