"""TensorFlow 1's way: Keras networks in the default graph, with sessions, callbacks, files."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
K = tf.keras.backend
layers, models = tf.keras.layers, tf.keras.models
random = np.random.RandomState(0)


def seeded(seed):
    return tf.keras.initializers.glorot_uniform(seed=seed)


def show(what, *values):
    print(what, *[np.array2string(np.round(v, 4), precision=4) for v in values])


# --- images, with a network of branches ---

config = tf.ConfigProto(intra_op_parallelism_threads=1)
K.set_session(tf.Session(config=config))

images = random.uniform(size=(60, 8, 8, 1)).astype("float32")
classes = (images[:, :4].mean((1, 2, 3)) > images[:, 4:].mean((1, 2, 3))).astype(int)

inputs = layers.Input(shape=(8, 8, 1), name="image")
how = dict(padding="same", use_bias=False)  # whose slope would be noise
x = layers.Conv2D(4, 3, kernel_initializer=seeded(1), **how)(inputs)
x = layers.BatchNormalization()(x)
x = layers.Activation("relu")(x)
short = layers.Conv2D(4, 1, kernel_initializer=seeded(2))(inputs)
x = layers.add([x, short])
x = tf.nn.max_pool2d(x, 2, 2, "SAME")  # a function of tf between layers
x = layers.GlobalAveragePooling2D()(x)
outputs = layers.Dense(2, activation="softmax", kernel_initializer=seeded(3))(x)
model = models.Model(inputs, outputs)
print([layer.name for layer in model.layers])
print(model.output, model.layers[1].kernel)
print(len(model.updates), len(model.trainable_weights))

model.compile(
    optimizer=tf.keras.optimizers.Adam(lr=0.01),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
print(model.metrics_names)
folder = tempfile.mkdtemp()
best = os.path.join(folder, "best.h5")
history = model.fit(
    images[:40],
    classes[:40],
    batch_size=16,
    epochs=4,
    shuffle=False,
    verbose=0,
    validation_data=(images[40:], classes[40:]),
    callbacks=[
        tf.keras.callbacks.ModelCheckpoint(best, save_best_only=True, monitor="loss"),
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 * 0.9**epoch),
        tf.keras.callbacks.TensorBoard(os.path.join(folder, "logs")),
        tf.keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: print(epoch, sorted(logs))
        ),
    ],
).history
for name in ("loss", "acc", "val_loss", "val_acc"):
    show(name, history[name])
show("evaluated", model.evaluate(images[40:], classes[40:], verbose=0))
show("predicted", model.predict(images[:3]))
show("averages", *model.layers[2].get_weights()[2:])
again = models.load_model(best)
show("same", np.abs(again.predict(images) - model.predict(images)).max())

# --- what layers see, and which features matter ---

pooled = model.layers[-2].output
slopes = K.gradients(model.output[:, 1], pooled)[0]
look = K.function([model.input, K.learning_phase()], [slopes, model.layers[1].output])
importance, seen = look([images[:5], 0])
show("importance", importance[:2])
print(seen.shape)
features = models.Model(model.input, model.layers[-2].output)
show("features", features.predict(images[:1]))

# --- words, from a generator ---

words = random.randint(1, 9, size=(40, 5))
words[::3, 3:] = 0
target = (words.sum(1) > 18).astype("float32")


def batches(size):
    while True:
        for at in range(0, len(words), size):
            yield words[at : at + size], target[at : at + size]


reader = models.Sequential(
    [
        layers.Embedding(9, 4, mask_zero=True, embeddings_initializer=seeded(4)),
        layers.LSTM(4, kernel_initializer=seeded(5), recurrent_initializer=seeded(6)),
        layers.Dense(1, activation="sigmoid", kernel_initializer=seeded(7)),
    ]
)
reader.compile("rmsprop", "binary_crossentropy", metrics=["acc"])
history = reader.fit(batches(8), steps_per_epoch=5, epochs=3, verbose=0).history
show("words", history["loss"], history["acc"])
show("read", reader.predict(words[:3])[:, 0])
show("on a batch", reader.train_on_batch(words[:8], target[:8]))

# --- Keras' layers in a loop of one's own ---

place = tf.placeholder(tf.float32, [None, 3])
wanted = tf.placeholder(tf.float32, [None, 1])
hidden = layers.Dense(4, activation="tanh", kernel_initializer=seeded(8))(place)
found = layers.Dense(1, kernel_initializer=seeded(9))(hidden)
loss = tf.losses.mean_squared_error(wanted, found)
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
a, b = random.uniform(size=(20, 3)), random.uniform(size=(20, 1))
session = K.get_session()
costs = [session.run([loss, train], {place: a, wanted: b})[0] for _ in range(5)]
show("costs", costs)

# --- what is left of a session that is cleared ---

K.clear_session()
small = models.Sequential([layers.Dense(2, input_shape=(3,))])
print(small.layers[0].name, tf.global_variables()[0].name, len(tf.global_variables()))
