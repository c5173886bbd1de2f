// Two networks against each other, with a tape and an optimizer for each: a
// generator that learns to give points of a ring, and a critic that tells them
// from points of the ring itself (Goodfellow et al., 2014).
#include <headrace/headrace.h>

#include <cstdio>

namespace tf = headrace::tf;
namespace layers = tf::layers;

namespace {

constexpr int64_t kBatch = 128, kNoise = 4;

// Operations take seeds of their own; layers follow tf::SetRandomSeed.
tf::Tensor Normal(int64_t width, int64_t seed) {
  return tf::RandomStandardNormal(tf::Tensor::From<int64_t>({kBatch, width}),
                                  tf::DType::kFloat32,
                                  {.seed = 1, .seed2 = seed});
}

// Points at a distance of about 1 from the middle.
tf::Tensor Ring() {
  const tf::Tensor angle =
      tf::RandomUniform(tf::Tensor::From<int64_t>({kBatch, 1}),
                        tf::DType::kFloat32, {.seed = 1, .seed2 = 2}) *
      6.2831853;
  return tf::ConcatV2({tf::Cos(angle), tf::Sin(angle)}, 1) +
         0.05 * Normal(2, 3);
}

// How far points are from the ring, on average.
tf::Tensor Distance(const tf::Tensor& points) {
  const tf::Tensor radius = tf::Sqrt(tf::Sum(tf::Square(points), 1));
  return tf::Mean(tf::Abs(radius - 1.0), 0);
}

}  // namespace

int main() {
  tf::SetRandomSeed(1);
  layers::Sequential generator(layers::Dense(32, {.activation = "relu"}),
                               layers::Dense(32, {.activation = "relu"}),
                               layers::Dense(2));
  layers::Sequential critic(layers::Dense(32), layers::LeakyReLU(0.2),
                            layers::Dense(32), layers::LeakyReLU(0.2),
                            layers::Dense(1));
  tf::Adam generator_optimizer(1e-3, 0.5), critic_optimizer(1e-3, 0.5);
  const tf::losses::BinaryCrossentropy loss({.from_logits = true});

  const tf::Function step([&](const std::vector<tf::Tensor>&) {
    tf::GradientTape of_generator, of_critic;
    const tf::Tensor made = generator(Normal(kNoise, 4), true);
    const tf::Tensor real = critic(Ring(), true), fake = critic(made, true);
    const tf::Tensor fools = loss(tf::OnesLike(fake), fake);
    const tf::Tensor tells =
        loss(tf::OnesLike(real), real) + loss(tf::ZerosLike(fake), fake);
    const auto mine = generator.trainable_variables();
    const auto theirs = critic.trainable_variables();
    generator_optimizer.Apply(of_generator.gradient(fools, mine), mine);
    critic_optimizer.Apply(of_critic.gradient(tells, theirs), theirs);
    return std::vector<tf::Tensor>{fools, tells, Distance(made)};
  });

  float first = 0, last = 0;
  for (int i = 0; i <= 4000; ++i) {
    const std::vector<tf::Tensor> now = step({});
    last = now[2].item<float>();
    if (i == 0) first = last;
    if (i % 1000 == 0) {
      std::printf("step %d: generator %.3f, critic %.3f, distance %.3f\n", i,
                  now[0].item<float>(), now[1].item<float>(), last);
    }
  }
  return last < first / 2 ? 0 : 1;
}
