"""Times public calls, those of public_calls.txt, in three sizes.

Usage: python benchmarks/public_calls.py [--tensorflow PYTHON] [--threads N]
           [--repeats N] [--sizes small,medium,large] [--worst RATIO] [WORD...]
PYTHON is an interpreter that has TensorFlow: the same calls run there by turns with
ours, on as many threads, and each row tells the best wall and processor times of both
in microseconds and their ratios. Of these, --worst prints the rows that are above
RATIO alone. Words choose calls by their text.
"""

import argparse
import os
import sys
import time

import children

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {"small": 64, "medium": 16384, "large": 1048576}
LEAST = 2e-3  # seconds that a measured run of a call, or of several, lasts


def calls(words):
    with open(os.path.join(HERE, "public_calls.txt"), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    lines = [line for line in lines if line and not line.startswith("#")]
    return [line for line in lines if not words or any(w in line for w in words)]


# --- The side that runs calls: one child a library.


def arguments(tf, np, n):
    """What the names in public_calls.txt stand for, for tensors of n elements."""
    random = np.random.RandomState(7)
    tf.random.set_seed(7)

    def floats(*shape):
        return tf.constant(random.randn(*shape).astype("float32"))

    v, w = floats(n), floats(n)
    made = {"tf": tf, "n": n, "side": int(n**0.5), "v": v, "w": w}
    made.update(_vectors(tf, np, random, n, v, w))
    made.update(_matrices(tf, floats, n))
    made.update(_images(tf, np, random, floats, n))
    made.update(_texts(tf, random, n))
    made.update(_sparse(tf, random, made["m"], made["side"]))
    return made


def _vectors(tf, np, random, n, v, w):
    side = int(n**0.5)
    m = tf.reshape(v, [side, -1])
    mixed = random.randint(0, min(side, 16), side).astype("int32")
    places = random.permutation(16).astype("int32") % side
    return {
        "p": tf.abs(v) * 2.0 + 0.1,
        "u": tf.constant(random.uniform(-1, 1, n).astype("float32")),
        "d": tf.cast(v, tf.float64),
        "h": tf.cast(v, tf.float16),
        "bf": tf.cast(v, tf.bfloat16),
        "z": tf.complex(v, w),
        "i": tf.range(n),
        "b": v > 0.0,
        "m": m,
        "m4": m[:4],
        "counts": tf.constant(random.randint(0, 20, n).astype("int32")),
        "tens": tf.tile(v, [10]),
        "rowids": tf.range(side) // 2,
        "mixed": tf.constant(mixed),
        "pairs": tf.constant(np.stack([places, places[::-1]], 1)),
        "lengths": tf.constant(random.randint(1, side, side).astype("int64")),
        "shuffled": tf.constant(random.permutation(n).astype("int32")),
        "sorted_v": tf.sort(v),
    }


def _matrices(tf, floats, n):
    size = {64: 8, 16384: 60, 1048576: 300}[n]
    square = floats(size, size)
    square64 = tf.cast(square, tf.float64)
    eye = tf.eye(size, dtype=tf.float64) * size
    positive64 = tf.matmul(square64, square64, transpose_b=True) + eye
    return {
        "square": square,
        "square64": square64,
        "tall64": tf.concat([square64, square64 + 1.0], 0),
        "positive64": positive64,
        "positive": tf.cast(positive64, tf.float32),
        "lower64": tf.linalg.cholesky(positive64),
        "zsquare": tf.complex(square, tf.transpose(square)),
        "batch": floats(max(n // 64, 1), 8, 8),
        "tri": floats(max(n // 3, 1), 3),
    }


def _images(tf, np, random, floats, n):
    edge = {64: 16, 16384: 64, 1048576: 256}[n]
    bytes_img = tf.constant(random.randint(0, 256, [4, edge, edge, 3]).astype("uint8"))
    low = random.rand(max(int(n**0.5), 8), 2).astype("float32") * 0.5
    boxes = np.concatenate([low, low + 0.3], 1)
    return {
        "img": tf.constant(random.rand(4, edge, edge, 3).astype("float32")),
        "img4": tf.constant(random.rand(4, edge, edge, 4).astype("float32")),
        "bytes_img": bytes_img,
        "kernel": floats(3, 3, 3, 8),
        "kernel1": floats(3, 3, 8),
        "feature": floats(4, edge, edge, 8),
        "rows3": floats(4, edge * 4, 3),
        "depthwise": floats(3, 3, 3, 2),
        "pointwise": floats(1, 1, 6, 8),
        "morph": floats(3, 3, 3),
        "boxes": tf.constant(boxes),
        "scores": tf.constant(random.rand(len(boxes)).astype("float32")),
        "jpeg": tf.io.encode_jpeg(bytes_img[0]),
        "png": tf.io.encode_png(bytes_img[0]),
        "logits": floats(edge, 3, 6),
        "lengths3": tf.constant([edge] * 3),
        "labels": tf.constant(random.randint(1, 5, [3, 3]).astype("int32")),
        "serialized": tf.io.serialize_tensor(floats(n)),
    }


def _texts(tf, random, n):
    count = {64: 20, 16384: 1000, 1048576: 20000}[n]
    names = [f"The quick brown fox, number {i} jumps" for i in range(count)]
    strings = tf.constant(names)
    numbers = [repr(round(x, 4)) for x in random.randn(count).tolist()]
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.0])
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            strings, tf.range(count, dtype=tf.int64), tf.string, tf.int64
        ),
        -1,
    )
    return {
        "strings": strings,
        "numbers": tf.constant(numbers),
        "integers": tf.strings.as_string(tf.range(count)),
        "codes": tf.strings.unicode_decode(strings, "UTF-8"),
        "base64": tf.io.encode_base64(strings),
        "raw": tf.constant([random.bytes(64)] * count),
        "csv": tf.constant([f"1.5,{i},word" for i in range(count)]),
        "examples": tf.constant([example.SerializeToString()] * count),
        "words": tf.sparse.from_dense([names[:4]]),
        "table": table,
    }


def _sparse(tf, random, m, side):
    sparse_m = tf.where(m > 1.5, m, tf.zeros_like(m))
    flat = tf.constant(random.randint(0, 99, side * 4).astype("float32"))
    sizes = random.multinomial(side * 4, [1 / side] * side).astype("int64")
    return {
        "sparse_m": sparse_m,
        "sp": tf.sparse.from_dense(sparse_m),
        "ragged": tf.RaggedTensor.from_row_lengths(flat, tf.constant(sizes)),
    }


def measure(call):
    """The best of one round: wall and processor seconds of a call."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    times = max(1, int(LEAST / max(once, 1e-7)))
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(times):
        call()
    processor = (time.process_time() - processor) / times
    return (time.perf_counter() - wall) / times, processor


def begin(tf, np):
    """Answers requests: a size and a call, or rounds of the last."""
    names, made, call = {}, None, None

    def answer(request):
        nonlocal names, made, call
        if "call" in request:
            if made != request["size"]:
                names = arguments(tf, np, SIZES[request["size"]])
                made = request["size"]
            call = eval("lambda: " + request["call"], names)
            call()
        return {"times": measure(call)}

    return answer


# --- The side that asks.


def best(asked, size, call, repeats):
    """For each child the least wall and processor times, or what went wrong."""
    found = [child.ask(size=size, call=call) for child in asked]
    for _ in range(repeats - 1):
        for child, result in zip(asked, found, strict=True):
            if "error" in result:
                continue
            times = child.ask().get("times", result["times"])
            result["times"] = [
                min(a, b) for a, b in zip(result["times"], times, strict=True)
            ]
    return found


def row(found, worst):
    """A row's columns; None where it is not asked for."""
    errors = [f["error"] for f in found if "error" in f]
    if errors:
        return "  ".join(errors)
    ours = found[0]["times"]
    text = f"{ours[0] * 1e6:10.1f} {ours[1] * 1e6:10.1f}"
    if len(found) > 1:
        theirs = found[1]["times"]
        ratios = [a / max(b, 1e-9) for a, b in zip(ours, theirs, strict=True)]
        if max(ratios) < worst:
            return None
        text += f" {theirs[0] * 1e6:10.1f} {theirs[1] * 1e6:10.1f}"
        text += f" {ratios[0]:6.2f} {ratios[1]:6.2f}"
    return text


def main():
    if sys.argv[1:2] == ["--serve"]:
        return children.serve(sys.argv[2], int(sys.argv[3]), begin)
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensorflow")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--worst", type=float, default=0)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    print("microseconds: wall, processor", end="")
    print("; TensorFlow's; ratios" if options.tensorflow else "")
    with children.of_libraries(__file__, options.tensorflow, options.threads) as asked:
        for size in options.sizes.split(","):
            print(f"--- {size}")
            for call in calls(options.words):
                text = row(best(asked, size, call, options.repeats), options.worst)
                if text is not None:
                    print(f"{text}  {call}", flush=True)


if __name__ == "__main__":
    main()
