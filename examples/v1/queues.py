"""A program of TensorFlow 1.x: lines of CSV files through queues into a monitored session.

    queues.py --folder F

Writes two files of points of a line into F, which readers and batches then take from
queues, in threads of their own, for forty rounds. The session saves to F/model: started
again, also after a kill, the program goes on from the last checkpoint, for as many rounds
more. The last line is what it learned of y = 2 x + 1.
"""

import argparse
import os

import headrace.compat.v1 as tf

ROUNDS, BATCH = 40, 10


def write_files(folder):
    """The names of two files, 50 lines "x,y" each."""
    names = [os.path.join(folder, f"points_{n}.csv") for n in range(2)]
    for number, name in enumerate(names):
        with open(name, "w", encoding="utf-8") as file:
            for i in range(number, 100, 2):
                x = i / 50 - 1
                file.write(f"{x},{2 * x + 1}\n")
    return names


def batches(names):
    """Tensors of the next batch, of lines in random order."""
    files = tf.train.string_input_producer(names, num_epochs=ROUNDS, seed=1)
    _, line = tf.TextLineReader().read(files)
    x, y = tf.decode_csv(line, record_defaults=[[0.0], [0.0]])
    return tf.train.shuffle_batch(
        [x, y], batch_size=BATCH, capacity=100, min_after_dequeue=50, seed=1
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    folder = parser.parse_args().folder
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)

    x, y = batches(write_files(folder))
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(y, w * x + b)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)

    # The files are read out when the queues are empty: should_stop() is true then.
    saved = os.path.join(folder, "model")
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=saved, save_checkpoint_steps=100
    ) as session:
        while not session.should_stop():
            session.run(train)
    # At its end the session saved once more.
    reader = tf.train.load_checkpoint(saved)
    print("step", reader.get_tensor("global_step"))
    print(f"y = {reader.get_tensor('w'):.2f} x + {reader.get_tensor('b'):.2f}")


if __name__ == "__main__":
    main()
