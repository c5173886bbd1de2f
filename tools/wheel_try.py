"""What a wheel that was just installed must do: tools/wheel_try.py SITE MODELS."""

import os
import sys
import tempfile

import headrace as tf

site, models = sys.argv[1:]
assert tf.__file__.startswith(site), tf.__file__


def same(tensor, wanted):
    assert abs(tensor.numpy() - wanted).max() < 1e-5, (tensor, wanted)


class Line(tf.Module):
    def __init__(self):
        self.w, self.b = tf.Variable(0.0), tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def __call__(self, x):
        return self.w * x + self.b


x = tf.constant([-1.0, 0.0, 2.0])
same(tf.math.cumsum(x), [-1.0, -1.0, 1.0])
line = Line()


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((line(x) - (3.0 * x + 1.0)) ** 2)
    gradients = tape.gradient(loss, [line.w, line.b])
    line.w.assign_sub(0.2 * gradients[0])
    line.b.assign_sub(0.2 * gradients[1])
    return loss


for _ in range(200):
    step()
same(line(x), [-2.0, 1.0, 7.0])

layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input([1]), layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.2), "mse")
model.fit(x[:, None], 3.0 * x[:, None] + 1.0, epochs=200, verbose=0)
same(model(x[:, None]), [[-2.0], [1.0], [7.0]])

with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(line, folder)
    same(tf.saved_model.load(folder)(x), [-2.0, 1.0, 7.0])
plain = tf.saved_model.load(os.path.join(models, "plain"))  # TensorFlow's
same(plain.scaled(tf.constant([1.0, 2.0]))["y"], [4.0, 7.0])
same(plain.signatures["serving_default"](x=x[:2])["twice"], [-2.0, 0.0])

with open("/proc/self/maps", encoding="utf-8") as maps:
    for line in maps:
        path = line.split()[-1]
        for name in ("libdnnl", "libprotobuf", "libabsl", "libre2", "libleveldb"):
            if name in path and not path.startswith(site):
                sys.exit("taken from the system: " + path)
print(f"Python {sys.version.split()[0]}: eager, traced, trained, saved and loaded")
