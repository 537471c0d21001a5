"""What statements leave unsaid: ranks of zero, records on edges, rounding, convexity, a probability (Sections 3 to 5).

Each check takes the statement with its hypothesis added; without it an exact case contradicts it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import sympy
from flint import arb

from pq import bounds
from proofs_checks.compounding import golden
from proofs_checks.exact import Algorithm, Grid, Points, Restricted, ball, log_ball, probability, psi
from proofs_checks.learning import with_ends

F = Fraction
HALF = F(1, 2)


def check_kary_rounding(subject: Callable[[int], int] = lambda depth: 4 * (2 ** (depth - 1) - 1)) -> str:
    """The display of thm:kary's proof needs the ranks that floors lose: m = n = 3, K = 3, two levels, much budget."""
    z, beta, depth, arity = F(1, 10**20), HALF, 2, 3  # z of the child; the root has 4 times its budget, p = 2
    quantiles = F(2, 5), F(1, 2), F(7, 10)
    priors = tuple({k + F(i, 8): F(1, 4) for k in range(4)} for i in (1, 2, 3))
    algorithm, data = Algorithm(quantiles, priors, (z**4, z**4, z), arity=arity), Grid(3)
    epsilon = -2 * log_ball(z) * 4 * ball(F(5, 4)) * (arity - 1)
    spread = log_ball(algorithm.inverse_psi_sum(data) / beta)
    display = 2 * arb.pi() ** 2 / epsilon * (arity - 1) * 2**depth * spread
    failure = probability(
        algorithm.law(data), lambda outputs: ball(max(algorithm.gaps(data, outputs))) > display + subject(depth)
    )
    assert failure <= beta, f"gap of 1 or more with probability {float(failure):.4f}, claimed {float(display):.2f}"
    return f"thm:kary's display at m = n = 3: {float(display):.2f} is claimed, a gap of 1 is certain; 4 ranks cover it"


def without_ends(data: Sequence[F]) -> F:
    """Least distance of two records."""
    return min(b - a for a, b in pairwise(data))


def check_loss_range(subject: Callable[[Sequence[F]], F] = with_ends) -> str:
    """Psi >= lambda psi/(b - a) on lambda-robust priors, if psi counts the distances from the ends."""
    z, least = F(1, 10**6), 1.0
    columns = ([F(1, 1000), HALF], [F(1, 4), HALF, F(9, 10)], [F(1, 3), F(999, 1000)], [F(1, 5), F(2, 5), F(4, 5)])
    for data, q, weight in itertools.product(columns, (F(0), F(1, 4), HALF, F(3, 4), F(1)), (F(1, 10), HALF, F(1))):
        ends = [F(0), *data, F(1)]
        cells = {(a + b) / 2: weight * (b - a) for a, b in pairwise(ends)}
        for far in cells:  # the rest of the mass in one cell
            inner = psi(Points(tuple(data)), q, cells | {far: cells[far] + 1 - weight}, z)
            assert inner >= weight * subject(data), (data, q, float(inner))
            least = min(least, float(inner / weight / with_ends(data)))
    return f"Psi >= lambda psi/(b - a) if psi counts the ends; the least ratio seen is {least:.4f}"


def check_modulus(subject: Callable[[F], F] = lambda modulus: 1 / modulus) -> str:
    """thm:dpftrl for a regulariser that is alpha-strongly convex: eta L^2 T/alpha; random signs force E|S_T|."""
    steps = 10**4
    forced = F(
        steps * math.comb(steps, steps // 2), 2**steps
    )  # E|S_T| of random signs: regret of any learner on [-1, 1]
    for modulus in (F(1), F(1, 1000)):
        reach = modulus / 2  # alpha theta^2/2 on [-1, 1]
        best = 2 * math.sqrt(reach * steps * subject(modulus))  # over all step sizes, without noise
        assert best >= forced, f"modulus {modulus}: at most {best:.1f} is claimed, {float(forced):.1f} is forced"
    return f"DP-FTRL, T = 10^4: {float(forced):.1f} is forced, whatever the modulus; the bound needs 1/modulus"


def check_convex_losses(subject: int = 1) -> str:
    """thm:dpftrl needs convex losses: on -theta^2/2 the iterates stay at 0, at a regret of T/2."""
    steps, eta = 100, F(1, 10)
    for centre in (F(0), HALF):

        def loss(theta: F, centre: F = centre) -> F:
            return subject * (theta - centre) ** 2 / 2

        theta, total, suffered = F(0), F(0), F(0)
        for _ in range(steps):
            suffered += loss(theta)
            total += subject * (theta - centre)
            theta = min(max(-eta * total, F(-1)), F(1))
        regret = suffered - steps * min(loss(F(k, 4)) for k in range(-4, 5))
        slope = 1 + centre
        assert regret <= HALF / eta + eta * slope**2 * steps, f"regret {regret}"
    return "DP-FTRL without noise on squares: within the bound for convex ones; regret 50 against 15 for concave ones"


def loss_limit(reach: float, scale: float, width: float) -> float:
    """2B/sigma_min + max(log 2, log(2 sigma_max/psi))."""
    return reach + max(math.log(2), math.log(2 * scale / width))


def check_end_ranks(subject: Callable[[float, float, float], float] = loss_limit) -> str:
    """U <= 2B/sigma_min + log(2 sigma_max/psi) fails at rank 0, where the interval is a tail that may weigh a half."""
    for bound, scale in itertools.product((1.0, 3.0), (0.1, 1.0, 10.0)):
        tail = float(2 * bound / scale + math.log(2))  # data (-B, B), rank 0, location B: mass exp(-2B/sigma)/2
        assert tail <= subject(2 * bound / scale, scale, 2 * bound) + 1e-12, (bound, scale)
        inside = 2 * bound / scale - math.log((math.exp(1e-6) - 1) / 2 * math.exp(-1e-6))  # one of length 1e-6 scales
        assert inside <= subject(2 * bound / scale, scale, 1e-6 * scale) + 1e-5, (bound, scale)
    return "U at rank 0 is 2B/sigma + log 2: more than 2B/sigma_min + log(2 sigma_max/psi) when psi > sigma_max"


def check_failure_probability(subject: float = 0.1) -> str:
    """thm:pubpri holds with probability 1 - beta' only: all public records may lie in the lesser part of the data."""
    records, runs, scale, left = 9, 10**6, 0.01, F(9, 10)
    public = records * runs  # nine tenths of D lie in [-1, -0.9], one in [0.9, 1]; the median of nine is sought
    to_reach = 0.9 / scale / (1 / math.sqrt(runs))  # steps of 1/sqrt(T), gradient -1, until theta sigma = 0.9
    location = 0.9 * (1 - to_reach / runs)  # least average of the iterates
    share = sum(math.comb(9, k) * left**k * (1 - left) ** (9 - k) for k in range(5, 10))  # the median lies on the left
    excess = float(share) * ((location + 0.9) / scale - 0.1 / scale - math.log(2)) - float(1 - share) * 2 / scale
    common = {"quantiles": 1, "data_bound": 1.0, "scale_min": scale, "scale_max": scale, "density_bound": 9.0}
    for version in ("paper", "corrected"):
        limit = bounds.thm_pubpri(public, records, total_variation=0.0, beta=0.1, version=version, **common)  # type: ignore[arg-type]
        assert limit < excess, (version, limit, excess)
    log_chance = public * math.log10(1 - left)  # of all public records on the right: then the bound fails
    assert subject > 0 and log_chance <= math.log10(subject), "it fails with positive probability"
    return f"excess {excess:.0f} above the bound of {limit:.1f} with probability 10^{log_chance:.0f}, not 0"


def check_worse_in_m(subject: Callable[[int], arb] = golden) -> str:
    """phi^k k > k^2 for all k = log2(m + 1): thm:binary depends on m worse than AQ's bound does."""
    for k in range(1, 80):
        assert subject(k) > k, k
    phi = (1 + sympy.sqrt(5)) / 2
    assert sympy.simplify(phi * (phi - 1)) == 1  # so phi^{k+1} - phi^k >= 1 from k = 1 on
    corrected = [bounds.fibonacci(k + 2) - 1 - k for k in range(1, 80)]
    assert corrected[:3] == [0, 0, 1] and all(value > 0 for value in corrected[2:])
    return "phi^k > k for every k >= 1; with the corrected constant equal for m = 1, 3 and worse from m = 7 on"


def check_update_tells(subject: int = 1) -> str:
    """One step of online learning on U tells (1, 2) from (-2, -1): the derivatives in theta are -1 and 1."""
    theta = sympy.symbols("theta", real=True)
    right = -sympy.log((sympy.exp(theta - 1) - sympy.exp(theta - 2)) / 2)  # theta <= 1, scale 1
    left = -sympy.log((sympy.exp(-1 - theta) - sympy.exp(-2 - theta)) / 2)  # theta >= -1
    slopes = [sympy.simplify(sympy.diff(sympy.expand_log(u, force=True), theta)) for u in (right, left)]
    assert slopes == [-subject, subject], slopes
    return "after one step from 0 the location is +eta or -eta: it says which of two data sets there was"


def check_edge_records(subject: Callable[[Sequence[int], Fraction], bool] = lambda data, low: low not in data) -> str:
    """lem:error's first line: records of a node below o, and below its left edge, are those below o, if no record
    equals that edge."""
    for n in (1, 2, 3):
        for data in itertools.combinations_with_replacement((1, 2, 3), n):
            points = Points(tuple(F(x) for x in data))
            for low, high in itertools.combinations([F(k, 2) for k in range(1, 8)], 2):
                node = Restricted(points, low, high)
                outputs = [F(k, 2) for k in range(1, 8) if low <= F(k, 2) <= high]
                same = all(node.below(o) + points.below(low) == points.below(o) for o in outputs if o > low)
                whole = node.size == points.below(high) - points.below(low)
                assert not subject(data, low) or (same and whole), (data, low, high)
                assert subject(data, low) or not (same and whole), (data, low, high)
    return "lem:error: the counts of its first line need a left edge that is no record; x = (1, 2, 3), edge 1, o = 3/2"


def check_large_budgets(
    subject: Callable[[float, float], float] = lambda logs, budget: 1 + math.sqrt(logs) / budget,
) -> str:
    """Main-text regret of sequential learning, T = d = m = 1: no budget makes up for a first prior without data."""
    regret = 1.0  # Laplace of scale 1 at 0 against one at 1, on (1, 2]: the masses differ by a factor e
    for logs in (10.0, 1e4, 1e12):  # log(2/delta'), with the largest budget that the theorem on DP-FTRL allows
        bound = (1 + 1) / 1 * math.sqrt(subject(logs, 4 * logs))  # (d^(3/4) + sigma_max)/sigma_min, m = T = 1
        assert regret <= bound, f"log(2/delta') = {logs:g}: regret {regret}, bound {bound:.3g}"
    return "one step, eps' = 4 log(2/delta'): regret 1, and the printed bound tends to 0; a 1 beside the noise keeps it"


def check_recursion_edges(subject: Callable[[Sequence[int], Sequence[int]], int] = lambda own, listed: own[0]) -> str:
    """The edges of Algorithm 1's recursion are the node's own sorted outputs o_{i_j}; the printed o_j are entries of
    the list that is being put together, in which those of earlier branches stand first."""
    for n in (8, 80, 800):  # K = 2, exact estimates of 1/4, 1/2, 3/4 of the records 1..n: an output of rank r is r
        quarter, half = n // 4, n // 2
        edge = subject([half], [quarter, half])
        rank = edge + (n - edge) // 2
        assert rank == 3 * n // 4, f"n = {n}: rank {rank} for {3 * n // 4}"
    return "Algorithm 1: with o_1 of the list for the node's own output, 3/4 comes out at rank 5n/8 without any noise"


def check_phi_magnitude(
    subject: Callable[[sympy.Expr, sympy.Expr], bool] = lambda value, limit: bool(value <= limit),
) -> str:
    """The 'magnitudes' of the derivative in phi at the ends are a bound: coth 1 = 1.313 against 3.313."""
    theta, phi = sympy.symbols("theta phi", positive=True)
    loss = phi - sympy.log(sympy.exp(phi) - sympy.cosh(theta))  # (a, b] = (-1, 1]
    slope = abs(sympy.diff(loss, phi).subs({theta: 1, phi: 1}))
    limit = 1 + (sympy.coth(1) + 1)
    assert abs(sympy.N(slope - sympy.coth(1), 30)) < 1e-25
    assert subject(sympy.N(slope, 30), sympy.N(limit, 30)), (sympy.N(slope), sympy.N(limit))
    return "at a = -1, b = 1, phi = theta = 1 the derivative in phi is 1.313 in size, the printed magnitude 3.313"
