"""The parts of serve_digits.sh: the digits network as a served model.

serve_digits.py export --folder F --to MODELS/2   what train_digits.py left in F,
                                                  as a SavedModel
serve_digits.py await --target T --version 2 [--label L]
                                                  until the server answers with it
serve_digits.py ask --grpc T --rest T             asks until the server is not ready
                                                  any more; says what was lost
"""

import argparse
import collections
import os
import sys
import threading
import time

import numpy as np
from headrace.serving import Client
from train_digits import DATA, make_model, tf

NAME = "digits"
LIMIT = 300  # seconds to wait for what must come
# So often each way is asked: at rest this leaves the processors to the training.
PACE = 0.01  # seconds
# When this many answers of version 2 came, its part has been seen.
ENOUGH = 200


def export(args):
    """Writes it beside its place and moves it there, so that no half of it is seen."""
    model = make_model()
    model(tf.zeros([1, 8, 8, 1]))
    checkpoint = tf.train.Checkpoint(model=model)
    newest = tf.train.latest_checkpoint(args.folder)
    checkpoint.restore(newest).expect_partial()

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32, "images")])
    def serve(images):
        scores = tf.nn.softmax(model(images))
        return {"scores": scores, "digit": tf.argmax(scores, axis=1)}

    module = tf.Module()
    module.model, module.serve = model, serve
    tf.saved_model.save(module, args.to + ".tmp", signatures=serve)
    os.rename(args.to + ".tmp", args.to)
    print("exported", os.path.basename(newest), "as version", os.path.basename(args.to))


def test_rows():
    """Images and digits that were not trained with: every fifth row."""
    rows = np.fromfile(DATA, np.uint8).reshape(-1, 65)[4::5]
    images = rows[:, :64].reshape(-1, 8, 8, 1).astype(np.float32) / 16
    return images, rows[:, 64]


def wait_until(holds, what):
    end = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"serve_digits: {what} did not come in {LIMIT} s")
        time.sleep(0.02)


def await_version(args):
    images, _ = test_rows()
    with Client(args.target, retries=0) as client:

        def answers():
            try:
                answer = client.predict(
                    NAME, {"images": images[:1]}, label=args.label, timeout=5
                )
            except (tf.errors.OpError, OSError):
                return False
            return answer.version == args.version

        wait_until(answers, f"version {args.version}")


class Way:
    """One of the four ways to ask, and what came of it."""

    def __init__(self, name, client, label):
        self.name, self.client, self.label = name, client, label
        self.seconds, self.lost, self.right = [], [], 0
        self.versions = collections.Counter()

    def ask(self, image, digit):
        begin = time.perf_counter()
        try:
            answer = self.client.predict(
                NAME, {"images": image}, label=self.label, outputs=["digit"]
            )
        except Exception as e:  # noqa: BLE001  (whatever it is: a request is lost)
            self.lost.append(f"{self.name}: {type(e).__name__}: {e}")
            return
        self.seconds.append(time.perf_counter() - begin)
        self.right += int(answer["digit"][0]) == digit
        self.versions[answer.version] += 1


def is_there(client):
    """Does the server speak the Open Inference Protocol?"""
    try:
        return client.ready(NAME)
    except (tf.errors.UnimplementedError, tf.errors.NotFoundError, KeyError):
        return False
    except tf.errors.InvalidArgumentError:  # no such path
        return False


def ways(args):
    found = []
    for protocol in ("v1", "v2"):
        for transport, target in ("gRPC", args.grpc), ("REST", args.rest):
            client = Client(target, protocol=protocol, retries=0, timeout=30)
            if protocol == "v1":
                found.append(Way(f"{transport} {protocol}", client, "stable"))
                found.append(Way(f"{transport} canary", client, "canary"))
            elif is_there(client):
                found.append(Way(f"{transport} {protocol}", client, None))
            else:
                print(f"no Open Inference Protocol over {transport}: not asked")
    return found


def ask(args):
    images, digits = test_rows()
    balancer = Client(args.rest, retries=0)  # sends no more where it is not ready
    wait_until(balancer.ready, "a ready server")
    asked_ways = ways(args)
    with_canary, done = threading.Event(), threading.Event()

    def loop(way):
        event = with_canary if way.label == "canary" else None
        while event is not None and not event.wait(0.05) and not done.is_set():
            pass
        row = 0
        while not done.is_set():
            way.ask(images[row : row + 1], digits[row])
            row = (row + 1) % len(images)
            time.sleep(PACE)

    threads = [threading.Thread(target=loop, args=(way,)) for way in asked_ways]
    for thread in threads:
        thread.start()
    print("asking:", ", ".join(way.name for way in asked_ways), flush=True)
    told = False
    while balancer.ready():
        if os.path.exists(args.canary):
            with_canary.set()
        if not told and sum(way.versions[2] for way in asked_ways) > ENOUGH:
            print("version 2 has answered", flush=True)
            told = True
        time.sleep(0.02)
    done.set()
    for thread in threads:
        thread.join()
    report(asked_ways)


def report(asked_ways):
    seconds = np.sort(np.concatenate([way.seconds for way in asked_ways]))
    lost = [text for way in asked_ways for text in way.lost]
    for way in asked_ways:
        n = len(way.seconds)
        versions = [f"{c} by version {v}" for v, c in way.versions.items() if v]
        text = ", ".join(
            [f"{n} asked", f"{way.right / max(n, 1):.3f} right", *versions]
        )
        middle = f"p50 {np.median(way.seconds) * 1e3:.2f} ms" if n else ""
        print(f"{way.name}: {text}, {middle}")
    for text in lost[:5]:
        print("lost:", text)
    p50, p999 = np.quantile(seconds, [0.5, 0.999])
    print(
        f"asked: {len(seconds) + len(lost)}  lost: {len(lost)}  "
        f"p99.9/p50: {p999 / p50:.1f}"
    )
    if lost:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("export")
    command.add_argument("--folder", required=True)
    command.add_argument("--to", required=True)
    command.set_defaults(run=export)
    command = commands.add_parser("await")
    command.add_argument("--target", required=True)
    command.add_argument("--version", type=int, required=True)
    command.add_argument("--label")
    command.set_defaults(run=await_version)
    command = commands.add_parser("ask")
    command.add_argument("--grpc", required=True)
    command.add_argument("--rest", required=True)
    command.add_argument("--canary", required=True, help="the file that allows it")
    command.set_defaults(run=ask)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
