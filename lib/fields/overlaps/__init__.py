"""Networks that learn one direction: the overlap of each neuron with the teacher, from the lazy to the rich phase."""
