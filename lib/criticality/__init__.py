"""Part V, Criticality: the step of a neuron as a change of variables, its power laws, the gradients of real data."""
