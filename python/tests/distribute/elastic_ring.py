"""A worker of a ring whose members come and go; started as a task of processes.Cluster.

    elastic_ring.py JOB INDEX CLUSTER, with FOLDER, STEPS and WAY in the environment

FOLDER/steps-INDEX has a line a step: its number, when it was committed, how many took
part. FOLDER/last-INDEX.npy has the weights and the momenta. WAY "ordered": gradients of
the micro-shards are summed in their order; "summed": each worker's first.
"""

import json
import os
import sys
import time

import numpy as np

import headrace as tf

WIDTH, SHARDS = 300, 12


def rows_of(step, shard):
    draw = np.random.RandomState(1000 * step + shard)
    return tf.constant(draw.rand(4, WIDTH), tf.float32)


def main(worker, count, folder, steps, way):
    strategy = tf.distribute.experimental.ElasticStrategy(
        timeout_seconds=float(os.environ.get("TIMEOUT", "120"))
    )
    # Others than the first worker begin with other values, and take the first one's.
    first = np.linspace(-1, 1, WIDTH, dtype=np.float32) + worker
    with strategy.scope():
        weights = tf.Variable(first)
        optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    state = tf.distribute.experimental.ElasticState(
        strategy, weights=weights, optimizer=optimizer
    )

    @tf.function
    def gradient(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(rows, weights) - 1.0) ** 2)
        return tape.gradient(loss, weights)

    @tf.function
    def apply(total):
        def of_replica(total):
            optimizer.apply_gradients(
                [(total / SHARDS, weights)], experimental_aggregate_gradients=False
            )

        strategy.run(of_replica, args=(total,))

    @tf.function
    def summed(value):
        def of_replica(value):
            return tf.distribute.get_replica_context().all_reduce("SUM", value)

        return strategy.run(of_replica, args=(value,))

    def train():
        while (step := state.commits) < steps:
            parts = [gradient(rows_of(step, i)) for i in state.share(SHARDS)]
            if way == "ordered":
                total = tf.reduce_sum(strategy.gather(tf.stack(parts), axis=0), 0)
            else:
                total = summed(tf.add_n(parts))
            apply(total)
            state.commit()
            with open(f"{folder}/steps-{worker}", "a", encoding="utf-8") as file:
                file.write(f"{step + 1} {time.time()} {len(state.members)}\n")
            # Time for those to come that are being started.
            time.sleep(0.03 if len(state.members) == count else 0.5)
        return state.generation

    print("generation", state.run(train), flush=True)
    momenta = [v.numpy() for v in optimizer.variables() if v.shape == weights.shape]
    np.save(f"{folder}/last-{worker}.npy", np.stack([weights.numpy(), *momenta]))


if __name__ == "__main__":
    job, index, spec = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    task = {"type": job, "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": task})
    given = os.environ
    main(index, len(spec[job]), given["FOLDER"], int(given["STEPS"]), given["WAY"])
