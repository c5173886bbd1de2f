"""Records and lines written, read back, parsed, cut and broken."""

import os
import tempfile

import tensorflow as tf

folder = tempfile.mkdtemp()
path = os.path.join(folder, "a.tfrecord")


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


with tf.io.TFRecordWriter(path) as writer:
    for i in range(7):
        parts = {
            "id": feature([i]),
            "x": feature([float(i), i / 2]),
            "tags": feature([b"t"] * (i % 3 + 1)),
        }
        writer.write(
            tf.train.Example(
                features=tf.train.Features(feature=parts)
            ).SerializeToString()
        )
spec = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "x": tf.io.FixedLenFeature([2], tf.float32),
    "tags": tf.io.VarLenFeature(tf.string),
    "none": tf.io.FixedLenFeature([], tf.string, default_value="-"),
}
data = (
    tf.data.TFRecordDataset(path).batch(3).map(lambda s: tf.io.parse_example(s, spec))
)
for row in data:
    print(
        row["id"].numpy(),
        row["x"].numpy().tolist(),
        tf.sparse.to_dense(row["tags"]).numpy().tolist(),
        row["none"].numpy(),
    )
ragged = {"tags": tf.io.RaggedFeature(tf.string)}
print(
    next(
        iter(
            tf.data.TFRecordDataset(path)
            .skip(2)
            .batch(2)
            .map(lambda s: tf.io.parse_example(s, ragged))
        )
    )
)
bad = os.path.join(folder, "b")
with open(bad, "wb") as f:
    f.write(b"this is not a file of records")
try:
    list(tf.data.TFRecordDataset(bad))
except tf.errors.DataLossError as e:
    print("DataLossError", "(Is this even a TFRecord file?)" in e.message)
csv = os.path.join(folder, "c.csv")
with open(csv, "w") as f:
    f.write('age,name,score\n3,ann,0.5\n,bob,1.5\n7,"c, d",\n')
lines = tf.data.TextLineDataset(csv).skip(1)
for age, name, score in lines.map(lambda s: tf.io.decode_csv(s, [[-1], [""], [9.0]])):
    print(age.numpy(), name.numpy().decode(), score.numpy())
made = tf.data.experimental.make_csv_dataset(
    csv, 2, label_name="score", num_epochs=1, shuffle=False
)
for features, label in made:
    print({k: v.numpy().tolist() for k, v in features.items()}, label.numpy())
