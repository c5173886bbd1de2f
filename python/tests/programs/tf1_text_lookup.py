"""TensorFlow 1's way: text files, lookup tables, and pictures decoded behind a queue."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
folder = tempfile.mkdtemp()
vocabulary = os.path.join(folder, "vocab.txt")
with tf.gfile.Open(vocabulary, "w") as f:
    f.write("\n".join(["the", "cat", "sat", "mat", "on", "a"]) + "\n")
text = os.path.join(folder, "text.txt")
with tf.gfile.Open(text, "w") as f:
    f.write("the cat sat\non a mat\n\nthe dog sat on the cat\n")
print(
    tf.gfile.Exists(text),
    tf.gfile.Glob(folder + "/*.txt") != [],
    tf.gfile.Stat(text).length,
)

words_to_ids = tf.lookup.StaticVocabularyTable(
    tf.lookup.TextFileInitializer(
        vocabulary,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    ),
    num_oov_buckets=2,
)
ids_to_words = tf.lookup.StaticHashTable(
    tf.lookup.TextFileInitializer(
        vocabulary,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
    ),
    default_value="<unk>",
)
sizes = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(["cat", "mat"], [3.0, 1.0]), -1.0
)
dataset = tf.data.TextLineDataset(text)
dataset = dataset.filter(lambda line: tf.strings.length(line) > 0)
dataset = dataset.map(lambda line: tf.string_split([line]).values)
dataset = dataset.map(lambda words: (words_to_ids.lookup(words), tf.size(words)))
dataset = dataset.padded_batch(
    3, (tf.TensorShape([None]), tf.TensorShape([])), (np.int64(9), 0)
)
iterator = dataset.make_initializable_iterator()
tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
ids, lengths = iterator.get_next()
words = ids_to_words.lookup(ids)
embeddings = tf.get_variable("embeddings", [8, 2], initializer=tf.ones_initializer())
mask = tf.sequence_mask(lengths, tf.shape(ids)[1], tf.float32)
summed = tf.reduce_sum(
    tf.nn.embedding_lookup(embeddings, tf.minimum(ids, 7)) * mask[..., None], 1
)
joined = tf.reduce_join(words, 1, separator=" ")
print(len(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(tf.tables_initializer())
    a, b, c, d = sess.run([ids, lengths, joined, summed])
    print(a.tolist(), b, c, d[:, 0])
    print(sess.run(sizes.lookup(tf.constant(["mat", "dog"]))), sess.run(sizes.size()))
    print(
        sess.run(tf.string_to_hash_bucket_fast(["cat", "dog"], 100)),
        sess.run(words_to_ids.lookup(tf.constant(["bird", "on"]))),
    )
    try:
        sess.run(ids)
    except tf.errors.OutOfRangeError as error:
        print("End of sequence" in error.message)

for i in range(4):
    image = np.full((6, 8, 3), 40 * i, np.uint8)
    with tf.Session(graph=tf.Graph()) as sess:
        data = sess.run(tf.image.encode_png(tf.constant(image)))
    with tf.gfile.GFile(os.path.join(folder, "%d.png" % i), "wb") as f:
        f.write(data)
with tf.Graph().as_default(), tf.Session() as sess:
    names = sorted(tf.gfile.Glob(os.path.join(folder, "*.png")))
    labels = tf.constant([0, 1, 2, 3])
    name, label = tf.train.slice_input_producer(
        [tf.constant(names), labels], num_epochs=2, shuffle=False
    )
    image = tf.image.decode_png(tf.read_file(name), channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    image.set_shape([6, 8, 3])
    crop = tf.image.resize_image_with_crop_or_pad(image, 4, 4)
    white = tf.image.per_image_standardization(image)
    batch, numbers, flat = tf.train.batch(
        [crop, label, white], 3, num_threads=1, allow_smaller_final_batch=True
    )
    whole, value = tf.WholeFileReader().read(
        tf.train.string_input_producer(names, shuffle=False)
    )
    rounds, line = tf.TextLineReader(skip_header_lines=1).read(
        tf.train.string_input_producer([text], num_epochs=1)
    )
    fixed = tf.FixedLengthRecordReader(record_bytes=10).read(
        tf.train.string_input_producer([text], shuffle=False)
    )[1]
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord, sess=sess)
    try:
        while True:
            pixels, told, z = sess.run([batch, numbers, flat])
            print(pixels.shape, told, pixels.max((1, 2, 3)).round(3), z.shape)
    except tf.errors.OutOfRangeError:
        print("read")
    name, bytes_ = sess.run([whole, value])
    print(os.path.basename(name), bytes_[1:4], sess.run(line), sess.run(fixed))
    coord.request_stop()
    coord.join(threads)
