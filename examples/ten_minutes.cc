// A dataset, a model, its training and its checkpoint (docs/guide/8_cc.md).
//
//   ten_minutes FOLDER
#include <headrace/headrace.h>

#include <cstdio>
#include <string>
#include <vector>

namespace tf = headrace::tf;

// Points of the plane, and whether each lies in the circle around 0 of
// radius 1.
tf::data::Dataset Points() {
  std::vector<float> points, inside;
  for (int i = 0; i < 256; ++i) {
    const float x = 0.2f * static_cast<float>(i % 16) - 1.5f;
    const float y = 0.2f * static_cast<float>(i / 16) - 1.5f;
    points.insert(points.end(), {x, y});
    inside.push_back(x * x + y * y < 1 ? 1.0f : 0.0f);
  }
  return tf::data::Dataset::FromTensorSlices(
      {tf::Tensor::From(points, {256, 2}), tf::Tensor::From(inside, {256, 1})});
}

tf::layers::Sequential Model() {
  return tf::layers::Sequential(
      tf::layers::Dense(16, {.activation = "relu"}),
      tf::layers::Dense(1, {.activation = "sigmoid"}));
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "ten_minutes";
  try {
    tf::SetRandomSeed(1);
    auto model = Model();
    tf::Adam adam(0.02);
    const tf::losses::BinaryCrossentropy loss;
    tf::metrics::BinaryAccuracy accuracy;
    tf::train::Fit(model, adam, loss, Points().Shuffle(256, 1).Batch(32),
                   {.epochs = 60, .metrics = {&accuracy}});
    tf::train::Evaluate(model, loss, Points().Batch(256), {&accuracy});
    std::printf("learned: %s\n",
                accuracy.result().item<float>() > 0.95f ? "yes" : "no");

    const std::string saved =
        tf::Checkpoint({{"model", model}}).save(folder + "/points");
    auto again = Model();
    const tf::Tensor middle = tf::Tensor::From<float>({0, 0}, {1, 2});
    again(middle);
    tf::Checkpoint({{"model", again}}).restore(saved);
    std::printf("the same: %s\n",
                again(middle).item<float>() == model(middle).item<float>()
                    ? "yes"
                    : "no");
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "ten_minutes: %s\n", e.what());
    return 1;
  }
  return 0;
}
