"""TensorFlow 1's way: records from files through queues, in threads that a Coordinator ends."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
folder = tempfile.mkdtemp()
draw = np.random.RandomState(0)


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def convert_to(name, rows):
    filename = os.path.join(folder, name + ".tfrecords")
    with tf.python_io.TFRecordWriter(filename) as writer:
        for _ in range(rows):
            label = draw.randint(3)
            image = (draw.rand(4, 4, 1) * 50 + 80 * label).astype(np.uint8)
            features = {
                "height": _int64_feature(4),
                "label": _int64_feature(label),
                "image_raw": _bytes_feature(image.tobytes()),
                "words": tf.train.Feature(
                    float_list=tf.train.FloatList(value=range(label))
                ),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return filename


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    key, serialized_example = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized_example,
        features={
            "image_raw": tf.FixedLenFeature([], tf.string),
            "label": tf.FixedLenFeature([], tf.int64),
            "words": tf.VarLenFeature(tf.float32),
        },
    )
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image.set_shape([16])
    image = tf.cast(image, tf.float32) * (1.0 / 255) - 0.5
    label = tf.cast(features["label"], tf.int32)
    return image, label, tf.sparse_tensor_to_dense(features["words"]), key


def inputs(filenames, batch_size, num_epochs):
    with tf.name_scope("input"):
        filename_queue = tf.train.string_input_producer(
            filenames, num_epochs=num_epochs, shuffle=False
        )
        image, label, words, key = read_and_decode(filename_queue)
        images, labels = tf.train.shuffle_batch(
            [image, label],
            batch_size=batch_size,
            num_threads=1,
            capacity=40,
            min_after_dequeue=20,
            seed=3,
        )
    return images, labels, words, key


files = [convert_to(name, 30) for name in ("train", "more")]
print(sum(1 for _ in tf.python_io.tf_record_iterator(files[0])))
with tf.Graph().as_default() as graph:
    images, labels, _, _ = inputs(files, 10, 3)
    with tf.variable_scope("softmax_linear"):
        weights = tf.get_variable("weights", [16, 3], initializer=tf.zeros_initializer)
        logits = tf.matmul(images, weights)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    init_op = tf.group(
        tf.global_variables_initializer(), tf.local_variables_initializer()
    )
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    print([r.name for r in runners], [v.op.name for v in tf.local_variables()])
    print([x.op.name for x in tf.get_collection(tf.GraphKeys.SUMMARIES)])
    sess = tf.Session()
    sess.run(init_op)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    step, told, seen = 0, [], 0
    try:
        while not coord.should_stop():
            _, value, batch = sess.run([train_op, loss, labels])
            told.append(value)
            seen += len(batch)
            step += 1
    except tf.errors.OutOfRangeError:
        print("Done training for 3 epochs, %d steps, %d rows." % (step, seen))
    finally:
        coord.request_stop()
    coord.join(threads)
    sess.close()
    print("%.4f" % told[0], told[-1] < told[0], len(threads))

with tf.Graph().as_default(), tf.Session() as sess:
    queue = tf.train.string_input_producer(files, shuffle=False, name="names")
    one = read_and_decode(queue)
    both = tf.train.batch([one[0], one[1]], 5, num_threads=1, name="five")
    padded = tf.train.batch([one[2]], 4, dynamic_pad=True, name="padded")
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    names = [r.name for r in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)]
    print(names)
    threads = tf.train.start_queue_runners(sess, coord)
    key = sess.run(one[3])
    print(
        key.startswith((files[0].encode(), files[1].encode())),
        both[0].shape,
        padded.shape,
    )
    print(sess.run(padded).shape[0], sess.run(both)[1].shape)
    coord.request_stop()
    coord.join(threads, stop_grace_period_secs=10, ignore_live_threads=True)
    print(coord.should_stop())
