"""How long SavedModels take to load, and what they need, beside TensorFlow.

    python benchmarks/saved_models.py --peer PYTHON [FOLDER]

PYTHON is an interpreter that has TensorFlow 2 and tf-keras; it writes the models into
FOLDER (a new one unless told), which are used again where they are there already. Each
figure is from processes of their own, ours and TensorFlow's in turns: the least of
ROUNDS, ours as a part of TensorFlow's, and that of the medians. Seconds from the end of the import on, `memory` in MB: by how much the process's
peak lies over what it held behind the import.

"objects" is `tf.saved_model.load` and a first call, "session" is the loader of
TensorFlow 1 and a first run of the signature.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

ROUNDS = 5
MODELS = {"resnet50": (1, 224, 224, 3), "nodes": (1, 4)}
NODES = 20000


def write(name, folder):
    import tensorflow as tf

    if name == "resnet50":
        import tf_keras

        tf.saved_model.save(tf_keras.applications.ResNet50(weights=None), folder)
        return

    class Chain(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def __call__(self, x):
            for _ in range(NODES // 2):
                x = tf.raw_ops.AddV2(x=tf.raw_ops.Tanh(x=x), y=x)
            return {"y": x}

    model = Chain()
    tf.saved_model.save(model, folder, {"serving_default": model.__call__})


def memory(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    return 0.0


def run_objects(tf, name, folder, lap):
    loaded = tf.saved_model.load(folder)
    lap("load")
    loaded.signatures["serving_default"](tf.zeros(MODELS[name]))
    lap("first_call")


def run_session(tf, name, folder, lap):
    v1 = tf.compat.v1
    with v1.Session(graph=tf.Graph()) as session:
        meta = v1.saved_model.load(session, ["serve"], folder)
        lap("load")
        signature = meta.signature_def["serving_default"]
        feed = next(iter(signature.inputs.values())).name
        fetch = next(iter(signature.outputs.values())).name
        zeros = numpy.zeros(MODELS[name], numpy.float32)
        session.run(fetch, {feed: zeros})
        lap("first_call")


def child(module, way, name, folder):
    try:  # a scheduling group of its own with a raised weight, where that is allowed
        os.setsid()
        with open("/proc/self/autogroup", "w") as group:
            group.write("-18")
    except OSError:
        pass
    tf = __import__(module)
    tf.zeros([1]).numpy()
    before = memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    figures, start = {}, time.perf_counter()

    def lap(what):
        figures[what] = time.perf_counter() - start - sum(figures.values())

    {"objects": run_objects, "session": run_session}[way](tf, name, folder, lap)
    figures["both"] = sum(figures.values())
    figures["memory"] = memory("VmHWM") - before
    print(json.dumps(figures))


def call(python, *arguments):
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    made = subprocess.run(
        [python, os.path.abspath(__file__), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return made.stdout


def each(measure, rounds):
    return {key: measure(r[key] for r in rounds) for key in rounds[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", required=True, help="TensorFlow's interpreter")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="")
    parser.add_argument("folder", nargs="?")
    options = parser.parse_args()
    top = options.folder or tempfile.mkdtemp(prefix="saved_models")
    for name in MODELS:
        folder = os.path.join(top, name)
        if not os.path.exists(os.path.join(folder, "saved_model.pb")):
            call(options.peer, "write", name, folder)
        for way in ("objects", "session"):
            if options.only not in f"{name} {way}":
                continue
            ours, theirs = [], []
            for _ in range(options.rounds):
                for python, module, rounds in (
                    (sys.executable, "headrace", ours),
                    (options.peer, "tensorflow", theirs),
                ):
                    text = call(python, "child", module, way, name, folder)
                    rounds.append(json.loads(text.splitlines()[-1]))
            a, b = each(min, ours), each(min, theirs)
            c, d = each(statistics.median, ours), each(statistics.median, theirs)
            for key in a:
                print(
                    f"{name:9} {way:8} {key:11}"
                    f"{a[key]:10.4f} {b[key]:10.4f} {a[key] / b[key]:8.3f}"
                    f" {c[key] / d[key]:8.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(*sys.argv[2:])
    elif sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
    else:
        main()
