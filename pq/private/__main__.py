"""Compile all that this machine has not compiled yet, so that no later call waits for it: `python -m
pq.private`."""

from pq.core.machine import coins, loss
from pq.private.fast import buckets, changes, losses, walk
from pq.private.mechanisms.joint import machine

if __name__ == "__main__":
    tree = walk.walk_lanes, losses.pair_losses, changes.pair_changes
    passes = buckets.count_buckets, buckets.collect_buckets, buckets.collect_between
    kernels = coins.bet, loss.laplace_losses, loss.learned_losses, *tree, machine.walk_joint, *passes
    print(f"{sum(kernel.make() for kernel in kernels)} inner loops are compiled")
