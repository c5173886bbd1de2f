"""Windows of a series three ways, and a generator as a dataset."""

import numpy as np
import tensorflow as tf

series = np.sin(np.arange(40) / 3).astype("float32")
by_keras = tf.keras.utils.timeseries_dataset_from_array(
    series[:-5], series[5:], 5, batch_size=4
)
x, y = next(iter(by_keras))
print(x.shape, y.numpy().round(3))
windows = tf.data.Dataset.from_tensor_slices(series).window(
    6, shift=7, drop_remainder=True
)
windows = windows.flat_map(lambda w: w.batch(6)).map(lambda w: (w[:-1], w[-1])).batch(3)
for a, b in windows:
    print(a.shape, np.round(b.numpy(), 3))
frames = tf.signal.frame(series, 5, 10)
print(frames.shape, np.round(frames[-1].numpy(), 3))
maker = tf.keras.preprocessing.sequence.TimeseriesGenerator(
    series, series, 5, batch_size=12
)
print(len(maker), maker[0][0].shape)
tf.keras.utils.set_random_seed(2)
model = tf.keras.Sequential([tf.keras.layers.Input((5,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
print(np.round(model.fit(maker, epochs=2, verbose=0, shuffle=False).history["loss"], 4))
print(np.round(model.fit(by_keras, epochs=2, verbose=0).history["loss"], 4))


def rows():
    for i in range(4):
        yield (
            {"n": i, "s": tf.sparse.SparseTensor([[i]], [float(i)], [4])},
            [i] * (i % 2 + 1),
        )


spec = (
    {"n": tf.TensorSpec([], tf.int32), "s": tf.SparseTensorSpec([4], tf.float32)},
    tf.TensorSpec([None], tf.int64),
)
data = tf.data.Dataset.from_generator(rows, output_signature=spec)
for d, values in data:
    print(d["n"].numpy(), tf.sparse.to_dense(d["s"]).numpy(), values.numpy())
padded = data.map(lambda d, v: v).padded_batch(
    4, padding_values=tf.constant(-1, tf.int64)
)
print(next(iter(padded)).numpy().tolist())
