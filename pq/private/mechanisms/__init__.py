"""Mechanisms, one file each: a law, its sampler, its exact log density, and the proof of its guarantee."""
