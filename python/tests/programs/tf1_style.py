"""TensorFlow 1's way: a picture optimized under fixed weights, as in style transfer."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
draw = np.random.RandomState(1)
content = draw.rand(1, 12, 12, 3).astype("f4")
style = np.tile(np.sin(np.arange(12))[None, None, :, None], (1, 12, 1, 3)).astype("f4")


def vgg(image, pooling="avg"):
    fixed = np.random.RandomState(5)
    net, current = {}, image
    for i, (name, depth) in enumerate(
        [("conv1", 4), ("relu1", 0), ("pool1", 0), ("conv2", 6), ("relu2", 0)]
    ):
        if name.startswith("conv"):
            kernel = fixed.normal(size=(3, 3, int(current.shape[-1]), depth)) * 0.3
            conv = tf.nn.conv2d(
                current,
                tf.constant(kernel, tf.float32),
                strides=(1, 1, 1, 1),
                padding="SAME",
            )
            current = tf.nn.bias_add(
                conv, tf.constant(fixed.normal(size=depth) * 0.1, tf.float32)
            )
        elif name.startswith("relu"):
            current = tf.nn.relu(current)
        else:
            pool = tf.nn.avg_pool if pooling == "avg" else tf.nn.max_pool
            current = pool(
                current, ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="SAME"
            )
        net[name] = current
    return net


def gram(features):
    flat = tf.reshape(features, [-1, int(features.shape[-1])])
    return tf.matmul(flat, flat, transpose_a=True) / tf.to_float(tf.size(flat))


with tf.Graph().as_default(), tf.Session() as sess:
    image = tf.placeholder(tf.float32, [1, 12, 12, 3])
    net = vgg(image)
    content_feature = sess.run(net["relu2"], {image: content})
    grams = {k: gram(net[k]).eval({image: style}) for k in ("relu1", "relu2")}

with tf.Graph().as_default():
    initial = content + draw.normal(size=content.shape).astype("f4") * 0.1
    image = tf.Variable(initial, name="image")
    other = tf.Variable(initial, name="other")
    net = vgg(image)
    content_loss = (
        2 * tf.nn.l2_loss(net["relu2"] - content_feature) / content_feature.size
    )
    style_loss = tf.add_n(
        [2 * tf.nn.l2_loss(gram(net[k]) - g) / g.size for k, g in grams.items()]
    )
    tv = tf.reduce_mean(tf.image.total_variation(image)) / 400
    loss = 0.05 * content_loss + 10 * style_loss + 0.1 * tv
    train_step = tf.train.AdamOptimizer(0.02, 0.9, 0.999, 1e-8).minimize(
        loss, var_list=[image]
    )
    limited = image.assign(tf.clip_by_value(image, -1.0, 1.0))
    spectrum = tf.abs(tf.fft2d(tf.cast(image[0, :, :, 0], tf.complex64)))
    deep = vgg(other, "max")["relu2"]
    score = tf.reduce_mean(deep[..., 2])
    grad = tf.gradients(score, other)[0]
    dream = other.assign_add(
        grad / (tf.sqrt(tf.reduce_mean(tf.square(grad))) + 1e-5) * 0.05
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        print([v.op.name for v in tf.global_variables()])
        for i in range(21):
            sess.run(train_step)
            sess.run(limited)
            if i % 5 == 0:
                told = sess.run([content_loss, style_loss, tv, loss])
                print("Iteration %d:" % i, *("%.5f" % x for x in told))
        print(sess.run(image).mean((0, 1, 2)).round(4), sess.run(spectrum).shape)
        for i in range(4):
            print("%.4f" % sess.run(score), sess.run(dream).shape)
        resized = tf.image.resize_bilinear(image, [6, 6], align_corners=True)
        byte = tf.saturate_cast(resized * 255, tf.uint8)
        print(
            byte.eval().mean().round(0) > 0,
            tf.image.adjust_contrast(resized, 2.0).eval().shape,
        )
        png = sess.run(tf.image.encode_png(byte[0]))
        again = sess.run(tf.image.decode_png(png, 3))
        print(png[:4], again.shape, (again == sess.run(byte)[0]).all())
