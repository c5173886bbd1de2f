"""Trains a small network on scanned digits, by the tasks of a cluster.

    headrace run -n 2 --ps 2 cluster_digits.py sync      the mean of both gradients
    headrace run -n 2 --ps 2 cluster_digits.py async     each gradient as it comes
    headrace run -n 3 cluster_digits.py ring             weights on each, gradients summed
    cluster_digits.py alone --workers 2                  one process, the mean gradient
    cluster_digits.py graph --graph F                    what a worker of cluster_digits.cc
                                                         runs by the servers of async

The task is what TF_CONFIG says. The last line of the first worker is "test accuracy:
0.9xxx"; --weights F writes its weights to F (.npz). sync and ring end with those of
alone, but for the last bits, as each worker takes its own rows in each step.
cluster_digits.sh runs all of them. --data may be a file of HDFS.
"""

import argparse
import json
import os
import time

import numpy as np

import headrace as tf

v1 = tf.compat.v1
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.bin")
SEED, ROWS, RATE = 17, 32, 0.2
SHAPES = {"hidden/w": (64, 48), "hidden/b": (48,), "out/w": (48, 10), "out/b": (10,)}


def read_digits(path):
    """Rows of 64 pixels, 0 to 1, and the digits: for training, and for testing."""
    with tf.io.gfile.GFile(path, "rb") as file:
        rows = np.frombuffer(file.read(), np.uint8).reshape(-1, 65)
    is_test = np.arange(len(rows)) % 5 == 4
    training = np.random.RandomState(SEED).permutation(rows[~is_test])
    return [
        (part[:, :64] / np.float32(16), part[:, 64])
        for part in (training, rows[is_test])
    ]


def first_weights():
    draw = np.random.RandomState(SEED)
    return {
        name: (draw.randn(*shape) * (len(shape) > 1) / 8).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def batch_of(data, step, index, workers):
    """The rows of one worker in one step."""
    begin = (step * workers + index) * ROWS
    chosen = np.arange(begin, begin + ROWS) % len(data[1])
    return data[0][chosen], data[1][chosen].astype(np.int32)


def logits_of(weights, pixels):
    hidden = tf.nn.relu(pixels @ weights["hidden/w"] + weights["hidden/b"])
    return hidden @ weights["out/w"] + weights["out/b"]


def loss_of(weights, pixels, digits):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            digits, logits_of(weights, pixels)
        )
    )


def eager_gradients(weights, pixels, digits):
    with tf.GradientTape() as tape:
        loss = loss_of(weights, pixels, digits)
    return tape.gradient(loss, weights)


def train_alone(data, steps, workers):
    weights = {name: tf.Variable(value) for name, value in first_weights().items()}

    @tf.function
    def update(batches):
        all_gradients = [eager_gradients(weights, *batch) for batch in batches]
        for name, weight in weights.items():
            weight.assign_sub(RATE * sum(g[name] for g in all_gradients) / workers)

    for step in range(steps):
        batches = [batch_of(data, step, i, workers) for i in range(workers)]
        update(tf.nest.map_structure(tf.constant, batches))
    return {name: weight.numpy() for name, weight in weights.items()}


def train_ring(data, steps, task):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers = strategy.num_replicas_in_sync
    with strategy.scope():
        weights = {name: tf.Variable(value) for name, value in first_weights().items()}

    def update(pixels, digits):
        gradients = eager_gradients(weights, pixels, digits)
        sums = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.MEAN, list(gradients.values())
        )
        for name, gradient in zip(gradients, sums):
            weights[name].assign_sub(RATE * gradient)

    run = tf.function(lambda *batch: strategy.run(update, args=batch))
    for step in range(steps):
        run(*map(tf.constant, batch_of(data, step, task["index"], workers)))
    return {name: weight.numpy() for name, weight in weights.items()}


def graph_by_servers(index, cluster, is_sync):
    """What a worker's graph gives: (pixels, digits, update), the count of updates, the
    weights, the variable that counts tokens and what takes one, and hooks."""
    workers = len(cluster["worker"])
    own = f"/job:worker/task:{index}"
    with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device=own)):
        count = v1.train.get_or_create_global_step()
        weights = {
            name: v1.get_variable(name, initializer=value)
            for name, value in first_weights().items()
        }
        tokens = v1.get_variable("tokens", [], initializer=tf.zeros_initializer())
        took_token = tokens.assign_add(1, use_locking=True)
        pixels = v1.placeholder(tf.float32, [None, 64], name="pixels")
        digits = v1.placeholder(tf.int32, [None], name="digits")
        optimizer, hooks = v1.train.GradientDescentOptimizer(RATE), []
        if is_sync:
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, workers)
            # No tokens ahead: those would let a worker begin a step on old weights,
            # whose gradient is dropped.
            hooks.append(optimizer.make_session_run_hook(index == 0, num_tokens=0))
        loss = loss_of(weights, pixels, digits)
        update = optimizer.minimize(loss, global_step=count, name="update")
        tf.identity(count, name="step")
        missing = v1.report_uninitialized_variables()
        tf.equal(tf.size(missing), 0, name="all_initialized")
    return (pixels, digits, update), count, weights, (tokens, took_token), hooks


def write_graph(path, index, cluster):
    """The graph of a worker by parameter servers, for cluster_digits.cc."""
    with tf.Graph().as_default() as graph:
        graph_by_servers(index, cluster, is_sync=False)
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())


def train_by_servers(data, steps, task, cluster, is_sync):
    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster), job_name=task["type"], task_index=task["index"]
    )
    if task["type"] == "ps":
        server.join()
    v1.disable_eager_execution()
    index, workers = task["index"], len(cluster["worker"])
    made, count, weights, (tokens, took_token), hooks = graph_by_servers(
        index, cluster, is_sync
    )
    pixels, digits, update = made
    # The chief's thread that applies gradients waits for those of a next step at the
    # end: it is not waited for.
    with v1.train.MonitoredTrainingSession(
        server.target, is_chief=index == 0, hooks=hooks, stop_grace_period_secs=0.2
    ) as session:
        step = 0
        while step < steps:
            batch = batch_of(data, step, index, workers)
            session.run(update, dict(zip((pixels, digits), batch)))
            if is_sync:
                # Who is early would take another's token, and give two gradients.
                session.run(took_token)
                while session.run(tokens) < (step + 1) * workers:
                    time.sleep(0.0005)
            step = step + 1 if is_sync else session.run(count) // workers
        return session.run(weights)


def accuracy_of(weights, data):
    hidden = np.maximum(data[0] @ weights["hidden/w"] + weights["hidden/b"], 0)
    found = (hidden @ weights["out/w"] + weights["out/b"]).argmax(1)
    return (found == data[1]).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("way", choices=["sync", "async", "ring", "alone", "graph"])
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--workers", type=int, default=1, help="of alone")
    parser.add_argument("--weights", help="where to write them")
    parser.add_argument("--graph", help="where to write the worker's graph")
    args = parser.parse_args()

    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    task = config.get("task", {"type": "worker", "index": 0})
    if args.way != "alone" and not config:
        parser.error(f"{args.way} needs a cluster: headrace run -n 2 ...")
    if args.way == "graph":
        return write_graph(args.graph, task["index"], config["cluster"])
    training, testing = read_digits(args.data)
    if args.way == "alone":
        weights = train_alone(training, args.steps, args.workers)
    elif args.way == "ring":
        weights = train_ring(training, args.steps, task)
    else:
        is_sync = args.way == "sync"
        weights = train_by_servers(
            training, args.steps, task, config["cluster"], is_sync
        )
    if task["index"] == 0:
        if args.weights:
            np.savez(args.weights, **weights)
        print(f"test accuracy: {accuracy_of(weights, testing):.4f}")
    return None


if __name__ == "__main__":
    main()
