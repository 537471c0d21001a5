"""Compile all that this machine has not compiled yet, so that no later call waits for it: `python -m pq.compiled`."""

from pq.compiled import coins, loss, walk
from pq.experiments import lane_gaps

if __name__ == "__main__":
    ready = coins.bet, loss.laplace_losses, walk.walk_lanes, lane_gaps.lane_max_gaps
    print(f"{len(ready)} inner loops are compiled")
