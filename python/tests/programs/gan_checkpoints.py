"""A generative network on points of a curve, saved while it trains and gone on with."""

import os
import tempfile

import numpy as np
import tensorflow as tf

L = tf.keras.layers
folder = os.path.join(tempfile.mkdtemp(), "gan")
rng = np.random.default_rng(4)
angles = rng.uniform(0, np.pi, 96)
points = np.stack([np.cos(angles), np.sin(angles)], 1).astype("float32")
noises = rng.normal(size=(24, 16, 3)).astype("float32")


class Pair(tf.Module):
    """Both networks, their optimizers and the place in the data."""

    def __init__(self):
        super().__init__()
        tf.keras.utils.set_random_seed(11)
        self.generator = tf.keras.Sequential(
            [L.Input((3,)), L.Dense(8), L.LeakyReLU(0.1), L.Dense(2)]
        )
        self.critic = tf.keras.Sequential(
            [L.Input((2,)), L.Dense(8, activation="tanh"), L.Dense(1)]
        )
        for model in (self.generator, self.critic):
            for i, w in enumerate(model.weights):
                values = np.cos(np.arange(w.shape.num_elements()) * (i + 1.3))
                w.assign(values.reshape(w.shape) * 0.5)
        self.step = tf.Variable(0, dtype=tf.int64)
        self.rates = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 8, 0.5)
        self.first = tf.keras.optimizers.legacy.Adam(0.05, beta_1=0.5)
        self.second = tf.keras.optimizers.legacy.SGD(self.rates, momentum=0.9)
        data = tf.data.Dataset.from_tensor_slices(points).repeat()
        self.batches = iter(data.batch(16))

    @tf.function
    def train(self, noise):
        real = next(self.batches)
        with tf.GradientTape(persistent=True) as tape:
            fake = self.generator(noise, training=True)
            on_real, on_fake = self.critic(real), self.critic(fake)
            entropy = tf.nn.sigmoid_cross_entropy_with_logits
            ones, zeros = tf.ones_like(on_fake), tf.zeros_like(on_fake)
            made = tf.reduce_mean(entropy(ones, on_fake))
            judged = tf.reduce_mean(entropy(ones, on_real) + entropy(zeros, on_fake))
        for loss, model, optimizer in (
            (made, self.generator, self.first),
            (judged, self.critic, self.second),
        ):
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
            optimizer.apply_gradients(zip(gradients, variables))
        self.step.assign_add(1)
        return made, judged, norm


def run(pair, manager, until):
    while int(pair.step) < until:
        i = int(pair.step)
        made, judged, norm = pair.train(noises[i])
        if i % 4 == 3:
            path = manager.save(checkpoint_number=i + 1)
            name = os.path.basename(path)
            print(name, "%.3f %.3f %.3f" % (made, judged, norm))


def manager_of(pair):
    checkpoint = tf.train.Checkpoint(
        generator=pair.generator,
        critic=pair.critic,
        optimizers=[pair.first, pair.second],
        batches=pair.batches,
        step=pair.step,
    )
    return tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)


pair = Pair()
run(pair, manager_of(pair), 16)
seen = pair.generator(noises[0]).numpy()
kept = sorted(n for n in os.listdir(folder) if n.endswith(".index"))
print(kept)

# Somebody else goes on from the last one, and from the one before.
other = Pair()
manager = manager_of(other)
print(manager.latest_checkpoint.split(os.sep)[-1], int(other.step))
status = manager.checkpoint.restore(manager.latest_checkpoint)
status.assert_existing_objects_matched()
print(int(other.step), np.allclose(other.generator(noises[0]), seen))
run(other, manager, 24)
again = Pair()
manager = manager_of(again)
manager.checkpoint.restore(manager.checkpoints[0])
run(again, manager, 24)
same = zip(other.generator.weights, again.generator.weights)
print([bool(np.allclose(a, b, atol=1e-6)) for a, b in same])
print([os.path.basename(path) for path in manager.checkpoints])

# Only the weights of one network, in a reader and in a network of its own.
reader = tf.train.load_checkpoint(folder)
shapes = reader.get_variable_to_shape_map()
mine = sorted(k for k in shapes if k.startswith("generator") and "OPTIMIZER" not in k)
print([(k.split("/.ATTR")[0], shapes[k]) for k in mine])
alone = Pair().generator
tf.train.Checkpoint(generator=alone).restore(
    tf.train.latest_checkpoint(folder)
).expect_partial()
print(np.round(alone(noises[1]).numpy()[:3], 3).tolist())
far = tf.norm(alone(noises.reshape(-1, 3)), axis=1)
print("%.3f %.3f" % (tf.reduce_mean(far), tf.math.reduce_std(far)))
