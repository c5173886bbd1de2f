// A functional model of two inputs and two outputs: what a pair of points has
// in common, from their coordinates and a noisy hint. Trained with callbacks,
// told, saved and restored.
#include <headrace/headrace.h>

#include <cstdio>
#include <filesystem>

namespace tf = headrace::tf;
namespace layers = tf::layers;

namespace {

// Points in the unit square; whether they lie on one side of the diagonal, and
// how far they are from each other.
tf::data::Dataset Pairs(int64_t count, int64_t seed) {
  const auto uniform = [&](int64_t width, int64_t more) {
    return tf::RandomUniform(tf::Tensor::From<int64_t>({count, width}),
                             tf::DType::kFloat32,
                             {.seed = seed, .seed2 = more});
  };
  const tf::Tensor a = uniform(2, 1), b = uniform(2, 2);
  const auto side = [](const tf::Tensor& p) {
    const auto xy = tf::Split(1, p, 2);
    return xy[0] < xy[1];
  };
  const tf::Tensor same =
      tf::Cast(tf::Equal(side(a), side(b)), tf::DType::kFloat32);
  const tf::Tensor distance =
      tf::Sqrt(tf::Sum(tf::SquaredDifference(a, b), 1, {.keep_dims = true}));
  return tf::data::Dataset::FromTensorSlices({a, b, same, distance});
}

layers::Model MakeModel() {
  const auto a = layers::Input({2}, {.name = "first"});
  const auto b = layers::Input({2}, {.name = "second"});
  const auto encoder = std::make_shared<layers::Dense>(
      16, layers::DenseOptions{.activation = "tanh"});
  const auto x = a.Then(encoder), y = b.Then(encoder);
  const auto both = layers::Join(layers::Concatenate(), {x * y, x - y})
                        .Then(layers::Dense(32, {.activation = "relu"}))
                        .Then(layers::Dense(32, {.activation = "relu"}));
  return layers::Model({a, b},
                       {both.Then(layers::Dense(1, {.activation = "sigmoid"})),
                        both.Then(layers::Dense(1))});
}

}  // namespace

int main() {
  tf::SetRandomSeed(7);
  layers::Model model = MakeModel();
  std::printf("%s", layers::Summary(model).c_str());

  const tf::losses::BinaryCrossentropy side;
  const tf::losses::MeanSquaredError distance;
  tf::metrics::BinaryAccuracy accuracy;
  const auto train = Pairs(2000, 1).Shuffle(2000, 3).Batch(32);
  const auto test = Pairs(500, 2).Batch(100);
  tf::train::FitOptions options{.epochs = 20,
                                .inputs = 2,
                                .more_losses = {&distance},
                                .loss_weights = {1, 4},
                                .metrics = {&accuracy},
                                .verbose = false,
                                .validation = &test};
  tf::train::History history;
  tf::train::EarlyStopping stopping(
      {.patience = 5, .restore_best_weights = true});
  options.callbacks = {&history, &stopping};
  tf::Adam adam(0.01);
  tf::train::Fit(model, adam, side, train, options);
  std::printf("epochs: %zu\n", history.epochs().size());

  const std::string folder =
      std::filesystem::temp_directory_path() / "headrace_two_inputs";
  tf::Checkpoint({{"model", model}}).write(folder + "/model");
  layers::Model again = MakeModel();
  tf::Checkpoint({{"model", again}}).restore(folder + "/model");
  accuracy.Reset();
  const float loss = tf::train::Evaluate(again, side, test, options);
  const float share = accuracy.result().item<float>();
  std::printf("restored: loss %.3f, accuracy %.3f\n", loss, share);
  std::filesystem::remove_all(folder);
  return share > 0.9f ? 0 : 1;
}
