"""Generated programs, traced, give what plain Python gives, and its gradients.

What the generator writes is in `generated`; its seeds are checked against TensorFlow.
AUTOGRAPH_PROGRAMS says how many programs run besides the first few (`make soak`: 1,200).
"""

import ast
import collections
import os
import threading

import generated
import pytest
from generated.judge import difference, tensors

import headrace as tf

WIDE = 1001  # the first seed of programs that have all
FEW = [*range(1, 26), *range(WIDE, WIDE + 10)]
SEVERAL = [*range(1, 101), *range(WIDE, WIDE + 60)]
MANY = int(os.environ.get("AUTOGRAPH_PROGRAMS", "0"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(program, its module) of a seed."""
    folder = tmp_path_factory.mktemp("programs")

    def write(seed):
        program = generated.make(seed)
        source = program.source("headrace")
        return program, generated.load(source, folder / f"program_{seed}.py")

    return write


def _agrees(written, seed):
    program, module = written(seed)
    verdict = generated.check(tf, module.f, **program.ways())
    assert verdict, f"{verdict.kind}\n{program.source('headrace')}\n{verdict.text}"


@pytest.mark.parametrize("seed", FEW)
def test_traced_programs_agree_with_plain_python(written, seed):
    _agrees(written, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, MANY + 1, 50))
def test_many_traced_programs_agree_with_plain_python(written, first):
    for seed in range(first, min(first + 50, MANY + 1)):
        _agrees(written, seed)


def _exits(tree):
    """(ways out of loops, the loops and conditionals around them) of a program."""

    def visit(node, around):
        if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
            yield type(node).__name__, around
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.With)):
            around = (*around, type(node).__name__)
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            around = ()
        for child in ast.iter_child_nodes(node):
            yield from visit(child, around)

    return visit(tree, ())


def test_programs_nest_everything_in_everything():
    nests, nodes = collections.Counter(), collections.Counter()
    for seed in SEVERAL:
        tree = ast.parse(generated.make(seed).source("headrace"))
        for leaving, around in _exits(tree):
            nests.update({(leaving, a, b) for a, b in zip(around, around[1:])})
        nodes.update(type(node).__name__ for node in ast.walk(tree))
        nodes.update(
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
        )
    for leaving in ("Break", "Continue", "Return"):
        for inner in ("If", "For", "Try", "With"):
            outers = {a for kind, a, b in nests if kind == leaving and b == inner}
            assert len(outers) >= 1 + (inner == "If"), (leaving, inner)
    assert {"Break", "Continue"} <= {kind for kind, a, _ in nests if a == "While"}
    for name in (
        "Nonlocal Lambda ListComp Starred AugAssign IfExp BoolOp Not Assert FunctionDef "
        "DictComp GeneratorExp ExceptHandler Raise NamedTuple"
    ).split():
        assert nodes[name] >= 10, name


def test_most_gradients_are_there_and_not_zero(written):
    judged = 0
    for seed in FEW:
        program, module = written(seed)
        if not program.differentiable:
            continue
        x, n, v, k = tensors(tf, generated.INPUTS[0])
        with tf.GradientTape() as tape:
            tape.watch([x, v])
            found = [t for t in tf.nest.flatten(module.f(x, n, v, k))]
            total = tf.add_n(
                [tf.reduce_sum(tf.cast(t, tf.float32)) for t in found if t is not None]
            )
        judged += any(g is not None for g in tape.gradient(total, [x, v]))
    assert judged >= len(FEW) // 3


@pytest.mark.parametrize("first", [9])
def test_eight_threads_convert_and_run_the_same_programs(written, first):
    programs = [written(seed) for seed in range(first, first + 8)]
    expected, failed = {}, []
    for program, module in programs:
        for i, given in enumerate(generated.INPUTS):
            expected[program.seed, i] = module.f(*tensors(tf, given))
    shared = {p.seed: tf.function(module.f) for p, module in programs}
    start = threading.Barrier(8, timeout=60)

    def run(number):
        for program, module in programs:
            start.wait()
            own = tf.function(module.f)
            function = own if number % 2 else shared[program.seed]
            for turn in range(len(generated.INPUTS)):
                i = (turn + number) % len(generated.INPUTS)
                found = function(*tensors(tf, generated.INPUTS[i]))
                told = difference(expected[program.seed, i], found)
                if told:
                    failed.append((program.seed, number, told))

    def guarded(number):
        try:
            run(number)
        except BaseException as error:
            failed.append((number, repr(error)))
            start.abort()

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
