"""Times calls that Python answers: small tensors, and what programs make of them.

Usage: python benchmarks/object_calls.py [--tensorflow PYTHON] [--threads N]
           [--repeats N] [--worst RATIO] [WORD...]
The rows are those of object_calls.txt: tf.experimental.numpy, ragged tensors, models and
layers, datasets, variables, optimizers, traced functions, tapes. PYTHON is an interpreter
that has TensorFlow (and tf_keras): the same rows run there by turns with ours, and each
tells the best wall and processor times of both in microseconds and their ratios. --worst
prints the rows that are above RATIO alone. Words choose rows by their text.
"""

import argparse
import os
import sys

import children
from public_calls import best, measure, row

HERE = os.path.dirname(os.path.abspath(__file__))


def table():
    """{name: (lines that prepare, the call)}: a row of the file is a section's name and
    its call; lines that begin with `>` prepare for the rows below them."""
    prepare, rows = [], []
    last_was_row = True
    with open(os.path.join(HERE, "object_calls.txt"), encoding="utf-8") as file:
        for line in map(str.rstrip, file):
            if line.startswith(">"):
                if last_was_row:
                    prepare = []
                prepare.append(line[2:])
                last_was_row = False
            elif line and not line.startswith("#"):
                rows.append((line, "\n".join(prepare)))
                last_was_row = True
    return dict(rows)


def begin(tf, np):
    """Answers requests: a call, or rounds of the last."""
    rows, call = table(), None

    def answer(request):
        nonlocal call
        if "call" in request:
            names = {"tf": tf, "np": np}
            tf.random.set_seed(7)
            exec(rows[request["call"]], names)
            call = eval("lambda: " + request["call"], names)
            for _ in range(3):  # the first trace, or build
                call()
        return {"times": measure(call)}

    return answer


def main():
    if sys.argv[1:2] == ["--serve"]:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 2, whose behaviour ours is
        return children.serve(sys.argv[2], int(sys.argv[3]), begin)
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensorflow")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--worst", type=float, default=0)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    print("microseconds: wall, processor", end="")
    print("; TensorFlow's; ratios" if options.tensorflow else "")
    with children.of_libraries(__file__, options.tensorflow, options.threads) as asked:
        for call in table():
            if options.words and not any(word in call for word in options.words):
                continue
            text = row(best(asked, None, call, options.repeats), options.worst)
            if text is not None:
                print(f"{text}  {call}", flush=True)


if __name__ == "__main__":
    main()
