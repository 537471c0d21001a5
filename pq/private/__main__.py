"""Compile all that this machine has not compiled yet, so that no later call waits for it: `python -m
pq.private`."""

from pq.core.machine import coins, loss
from pq.private.fast import pairs, walk
from pq.private.mechanisms.joint import machine

if __name__ == "__main__":
    kernels = coins.bet, loss.laplace_losses, walk.walk_lanes, pairs.pair_losses, pairs.pair_changes, machine.walk_joint
    print(f"{sum(kernel.make() for kernel in kernels)} inner loops are compiled")
