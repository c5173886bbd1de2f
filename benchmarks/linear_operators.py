"""Times methods of linear operators beside the dense kernels that stand for them.

Usage: python benchmarks/linear_operators.py [--tensorflow PYTHON] [--sizes 2,8,32,...]
           [--turns N] [--modes eager,function] [--worst RATIO] [WORD...]
A row is a class and a method: what the operator takes, what its dense kernel takes
(tf.linalg.matmul of the matrix, tf.linalg.solve, ...), in microseconds, and the least and
the median of the ratios of turns that both had one behind the other. PYTHON is an
interpreter that has TensorFlow, whose operators run by turns with ours: the last two
columns are theirs in microseconds, and ours as a part of it. --worst prints the rows that
are above RATIO alone. Words choose rows by their text.
"""

import argparse
import functools
import statistics
import sys
import time

import children

LEAST = 1e-3  # seconds that one turn lasts


# --- The side that runs calls: one child a library.


def matrices(tf, np, n):
    """The numbers that operators of n rows are made of, well conditioned."""
    random = np.random.RandomState(7)
    square = random.randn(n, n) / n + 2.0 * np.eye(n)
    definite = square @ square.T
    diagonal = 1.0 + random.rand(n)
    made = {
        "square": square,
        "definite": definite,
        "lower": np.tril(square),
        "diagonal": diagonal,
        "spectrum": diagonal,
        "column": np.r_[3.0, random.randn(n - 1) / n],
        "row": np.r_[3.0, random.randn(n - 1) / n],
        "axis": random.randn(n),
        "thin": random.randn(n, 2) / n,
        "three": np.stack([0.1 * diagonal, 2 * diagonal, 0.1 * diagonal]),
    }
    made = {k: tf.constant(v.astype("float32")) for k, v in made.items()}
    made["perm"] = tf.constant(random.permutation(n).astype("int32"))
    return made


def operators(tf, np, n):
    """{name: operator of n rows}."""
    linalg, m = tf.linalg, matrices(tf, np, n)
    full = linalg.LinearOperatorFullMatrix
    half = {k: v[: n // 2, : n // 2] for k, v in m.items() if v.shape.rank == 2}
    two = full(tf.constant([[2.0, 0.5], [0.25, 3.0]]), is_non_singular=True)
    big = full(half["square"], is_non_singular=True)
    plain = full(m["square"], is_non_singular=True)
    lower = linalg.LinearOperatorLowerTriangular(m["lower"], is_non_singular=True)
    diagonal = linalg.LinearOperatorDiag(m["diagonal"], is_positive_definite=True)
    return {
        "FullMatrix": plain,
        "FullMatrix definite": full(
            m["definite"], is_self_adjoint=True, is_positive_definite=True
        ),
        "Diag": diagonal,
        "LowerTriangular": lower,
        "Identity": linalg.LinearOperatorIdentity(n),
        "ScaledIdentity": linalg.LinearOperatorScaledIdentity(
            n, tf.constant(2.0), is_positive_definite=True
        ),
        "Zeros": linalg.LinearOperatorZeros(n),
        "Circulant": linalg.LinearOperatorCirculant(
            m["spectrum"], input_output_dtype=tf.float32, is_positive_definite=True
        ),
        "BlockDiag": linalg.LinearOperatorBlockDiag([big, big]),
        "BlockLowerTriangular": linalg.LinearOperatorBlockLowerTriangular(
            [[big], [full(half["definite"]), big]]
        ),
        "Kronecker": linalg.LinearOperatorKronecker([two, big]),
        "Composition": linalg.LinearOperatorComposition([plain, diagonal]),
        "LowRankUpdate": linalg.LinearOperatorLowRankUpdate(diagonal, m["thin"]),
        "Householder": linalg.LinearOperatorHouseholder(m["axis"]),
        "Permutation": linalg.LinearOperatorPermutation(m["perm"]),
        "Toeplitz": linalg.LinearOperatorToeplitz(m["column"], m["row"]),
        "Tridiag": linalg.LinearOperatorTridiag(m["three"]),
        "Inversion": linalg.LinearOperatorInversion(plain),
        "Adjoint": linalg.LinearOperatorAdjoint(plain),
    }


def dense_ways(tf, name, operator):
    """{method: (call of the operator, call of the dense kernel)}; both take x [n, 4],
    vectors [n]."""
    linalg = tf.linalg
    dense = tf.constant(operator.to_dense().numpy())
    solve = linalg.solve
    logs = lambda: linalg.slogdet(dense)[1]
    if name == "LowerTriangular":
        solve = linalg.triangular_solve
    if name == "FullMatrix definite":
        logs = lambda: linalg.logdet(dense)

        def solve(m, b, adjoint=False):
            return linalg.cholesky_solve(linalg.cholesky(m), b)

    def column(function, v):
        return tf.squeeze(function(tf.expand_dims(v, -1)), -1)

    builds = {
        "Diag": lambda: linalg.diag(operator.diag),
        "LowerTriangular": lambda: linalg.band_part(operator.tril, -1, 0),
        "Identity": lambda: tf.eye(dense.shape[0]),
        "ScaledIdentity": lambda: tf.eye(dense.shape[0]) * operator.multiplier,
        "Zeros": lambda: tf.zeros(dense.shape),
    }
    built = builds.get(name, lambda: tf.identity(dense))
    ways = {
        "matmul": (operator.matmul, lambda x: linalg.matmul(dense, x)),
        "matmul adjoint": (
            lambda x: operator.matmul(x, adjoint=True),
            lambda x: linalg.matmul(dense, x, adjoint_a=True),
        ),
        "matvec": (operator.matvec, lambda v: linalg.matvec(dense, v)),
        "solve": (operator.solve, lambda x: solve(dense, x)),
        "solve adjoint": (
            lambda x: operator.solve(x, adjoint=True),
            lambda x: solve(dense, x, adjoint=True),
        ),
        "solvevec": (
            operator.solvevec,
            lambda v: column(lambda c: solve(dense, c), v),
        ),
        "determinant": (operator.determinant, lambda: linalg.det(dense)),
        "log_abs_determinant": (operator.log_abs_determinant, logs),
        "trace": (operator.trace, lambda: linalg.trace(dense)),
        "diag_part": (operator.diag_part, lambda: linalg.diag_part(dense)),
        "to_dense": (operator.to_dense, built),
        "adjoint": (operator.adjoint, lambda: linalg.adjoint(dense)),
        "inverse": (operator.inverse, lambda: linalg.inv(dense)),
        "cholesky": (operator.cholesky, lambda: linalg.cholesky(dense)),
    }
    if name == "Zeros":
        for method in ("solve", "solve adjoint", "solvevec", "inverse"):
            del ways[method]
        del ways["log_abs_determinant"]
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        del ways["cholesky"]
    return ways


GIVE_OPERATORS = ("adjoint", "inverse", "cholesky")


def rows(tf, np, n, modes):
    """{text: (call of the operator, call of its dense kernel)}, both without arguments."""
    x = tf.constant(np.random.RandomState(3).randn(n, 4).astype("float32"))
    taken = {"matvec": x[:, 0], "solvevec": x[:, 0]}
    taken = {k: tf.identity(v) for k, v in taken.items()}
    found = {}
    for name, operator in operators(tf, np, n).items():
        for method, pair in dense_ways(tf, name, operator).items():
            args = ()
            if method.split()[0] in ("matmul", "solve", "matvec", "solvevec"):
                args = (taken.get(method, x),)
            for mode in modes:
                if mode == "function":
                    if method in GIVE_OPERATORS:
                        continue
                    pair = [tf.function(call) for call in pair]
                calls = [functools.partial(call, *args) for call in pair]
                found[f"{mode} {n} {name} {method}"] = calls
    return found


def turn(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def measure(pair, turns):
    """The seconds that each of two calls takes, a list of both for each turn."""
    counts = []
    for call in pair:
        call()
        call()
        once = min(turn(call, 1) for _ in range(3))
        counts.append(max(1, int(LEAST / max(once, 1e-7))))
    return [[turn(c, n) for c, n in zip(pair, counts)] for _ in range(turns)]


def begin(tf, np):
    """Answers requests: sizes and modes, then rows by their texts."""
    made = {}

    def answer(request):
        nonlocal made
        if "size" in request:
            made = rows(tf, np, request["size"], request["modes"])
            return {"rows": list(made)}
        return {"times": measure(made[request["row"]], request["turns"])}

    return answer


# --- The side that asks.


def row(answers, worst):
    """A row's columns; None where it is not asked for."""
    errors = [a["error"] for a in answers if "error" in a]
    if errors:
        return "  ".join(errors)
    times = answers[0]["times"]
    ours, dense = (min(column) for column in zip(*times))
    shown = ours / dense
    median = statistics.median(a / b for a, b in times)
    parts = [ours * 1e6, dense * 1e6, shown, median]
    if len(answers) > 1:
        theirs = min(a for a, _ in answers[1]["times"])
        parts += [theirs * 1e6, ours / theirs]
        shown = ours / theirs
    if shown < worst:
        return None
    return " ".join(f"{p:8.2f}" for p in parts)


def main():
    if sys.argv[1:2] == ["--serve"]:
        return children.serve(sys.argv[2], int(sys.argv[3]), begin)
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensorflow")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--sizes", default="2,8,32,128,512")
    parser.add_argument("--modes", default="eager,function")
    parser.add_argument("--worst", type=float, default=0)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    print("operator, dense, ratio of the best, median ratio", end="")
    print("; TensorFlow's operator, ratio" if options.tensorflow else "")
    with children.of_libraries(__file__, options.tensorflow, options.threads) as asked:
        for size in map(int, options.sizes.split(",")):
            modes = options.modes.split(",")
            texts = [c.ask(size=size, modes=modes) for c in asked][0]["rows"]
            for text in texts:
                if options.words and not any(w in text for w in options.words):
                    continue
                answers = [c.ask(row=text, turns=options.turns) for c in asked]
                columns = row(answers, options.worst)
                if columns is not None:
                    print(f"{columns}  {text}", flush=True)


if __name__ == "__main__":
    main()
