"""Modes integrated out one by one: decimation, the flow of the ridge, and Ising chains to compare."""
