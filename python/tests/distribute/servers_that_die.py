"""Workers that train on a parameter server, each for itself, and go on when a task of
them dies: the launcher starts again what was killed, the workers make a new session, the
chief's begins with the last checkpoint.

    headrace run -n 2 --ps 1 --restarts 100 servers_that_die.py FOLDER STEPS

FOLDER/steps has a line a step of the chief, FOLDER/last.npy the weights.
"""

import json
import os
import sys
import time

import numpy as np

import headrace as tf

v1 = tf.compat.v1
WANTED = np.linspace(-1, 1, 50, dtype=np.float32)


def main(folder, steps):
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    server = tf.distribute.Server(cluster, task["type"], task["index"])
    if task["type"] == "ps":
        server.join()
    v1.disable_eager_execution()
    index = task["index"]
    own = f"/job:worker/task:{index}"
    with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device=own)):
        count = v1.train.get_or_create_global_step()
        weights = v1.get_variable("weights", initializer=np.zeros_like(WANTED))
        loss = tf.reduce_sum((weights - WANTED) ** 2)
        optimizer = v1.train.GradientDescentOptimizer(0.02)
        update = optimizer.minimize(loss, global_step=count)
    with v1.train.MonitoredTrainingSession(
        server.target,
        is_chief=index == 0,
        checkpoint_dir=folder + "/saved",
        save_checkpoint_steps=10,
        save_summaries_steps=None,
        save_summaries_secs=None,
        stop_grace_period_secs=0.2,
        hooks=[v1.train.StopAtStepHook(last_step=steps)],
    ) as session:
        while not session.should_stop():
            _, made, found = session.run([update, count, weights])
            if index == 0:
                with open(folder + "/steps", "a", encoding="utf-8") as file:
                    file.write(f"{made} {time.time()}\n")
                np.save(folder + "/last.npy", found)
            time.sleep(0.02)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    main(sys.argv[1], int(sys.argv[2]))
