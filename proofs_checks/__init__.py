"""Machine checks of the paper's claims: a folder for each section, with rows, checks and the broken variants that each
check must reject.

Every checkable statement of the paper has a row in the `claims.toml` of its section, under the paper's label; a label
of ours where the paper gives none, and `ours:` before statements that are not the paper's. `@check` joins rows, code
and mutants; `pq claims LABEL` shows them together, and `test_claims` says what they must be.

verdict: what became of the statement as it is printed.
  holds             True as printed, with the conventions of the paper: natural logarithms, O and Ω up to constants, Õ
                    also up to logarithms. A statement that something exists holds if it does.
  holds corrected   False as printed, but all that is printed (formula, constants, direction, range) is right once
                    something is added that the paper leaves unsaid: a hypothesis (mass at most one, a rank that is
                    not 0, enough records, no ties, a large m, a constant that depends on the interval), or where "="
                    is read as the bound that is used.
  false as stated   Something that is printed has to change: a constant, a term, a power, an index, a direction, or a
                    range that the paper states itself.
  not decided       Nothing that exact arithmetic or a simulation of ours could settle; the note says what is missing.
  definition        Nothing is claimed.
A theorem's own row has the verdict of the worst part of what it states. Rows label/part are its parts, steps of its
proof, or remarks about it; only the first count for the theorem.

grade: how we know. Of "holds": the statement. Of "holds corrected": the corrected statement. Of "false as stated":
the counterexample, and the note says how the corrected statement is backed where that is less. One of: proved (z3,
sympy, interval or exact integer arithmetic over the whole stated domain; an exact counterexample), high precision,
property tested, statistical, none.
"""
