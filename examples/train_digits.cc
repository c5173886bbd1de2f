// Trains a small convolutional network on scanned digits, in C++; the twin of
// train_digits.py, whose checkpoints it restores, and the other way round.
//
//   train_digits --folder F [--steps N]   trains; goes on where F's newest
//                                         checkpoint stopped
//   train_digits --folder F --evaluate    restores it and tests only
//
// The last line is "test accuracy: 0.9xxx". The object graph of a checkpoint:
//   step                                  int64, training steps done
//   model/{conv1,conv2,hidden,output}/{kernel,bias}
//   optimizer/step, optimizer/m/I, optimizer/v/I   Adam's, in the order of
//                                         the model's variables above
#include <headrace/headrace.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tf = headrace::tf;

constexpr int kImage = 64, kRow = 65, kBatch = 32;
constexpr int64_t kSteps = 1350, kSaveEvery = 50;
constexpr uint64_t kSeed = 17;

struct Digits {
  std::vector<float> images;  // [n, 8, 8, 1], 0 to 1
  std::vector<int32_t> labels;
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

// Every fifth scan is for testing.
void Load(const std::string& path, Digits* train, Digits* test) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> row(kRow);
  for (int i = 0; file.read(row.data(), kRow); ++i) {
    Digits* to = i % 5 == 4 ? test : train;
    for (int k = 0; k < kImage; ++k) to->images.push_back(row[k] / 16.0f);
    to->labels.push_back(row[kImage]);
  }
  if (train->size() == 0) {
    std::fprintf(stderr, "train_digits: cannot read %s\n", path.c_str());
    std::exit(1);
  }
}

struct Batch {
  tf::Tensor images, labels;
};

Batch Take(const Digits& d, const std::vector<int>& rows) {
  std::vector<float> images;
  std::vector<int32_t> labels;
  for (int r : rows) {
    images.insert(images.end(), d.images.begin() + r * kImage,
                  d.images.begin() + (r + 1) * kImage);
    labels.push_back(d.labels[r]);
  }
  int64_t n = static_cast<int64_t>(rows.size());
  return {tf::Tensor::From(images, {n, 8, 8, 1}), tf::Tensor::From(labels)};
}

// The order of an epoch depends on its number alone, so that a run that is
// killed goes on with the batches it would have seen.
std::vector<int> Order(int64_t n, int64_t epoch) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(kSeed + epoch);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i], order[random() % (i + 1)]);
  }
  return order;
}

// A layer's kernel and bias.
struct Layer : tf::Module {
  Layer(const tf::TensorShape& shape, int seed) {
    int64_t fan_in = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) fan_in *= shape[i];
    tf::Tensor normal = tf::StatelessRandomNormal(
        tf::Tensor::From(shape.dims), tf::Tensor::From<int32_t>({seed, 0}));
    kernel = Track("kernel",
                   tf::Variable(normal * std::sqrt(2.0 / fan_in), "kernel"));
    int64_t out = shape[shape.rank() - 1];
    bias = Track("bias", tf::Variable(tf::Tensor::From(std::vector<float>(out)),
                                      "bias"));
  }
  tf::Variable kernel, bias;
};

struct Model : tf::Module {
  Model() {
    Track("conv1", &conv1);
    Track("conv2", &conv2);
    Track("hidden", &hidden);
    Track("output", &output);
  }

  tf::Tensor Logits(const tf::Tensor& images) const {
    tf::Tensor x = Convolve(images, conv1);
    x = Convolve(x, conv2);
    x = tf::MaxPool(x, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
    x = tf::Reshape(x, tf::Tensor::From<int32_t>({-1, 4 * 4 * 32}));
    x = tf::Relu(tf::BiasAdd(tf::MatMul(x, hidden.kernel), hidden.bias));
    return tf::BiasAdd(tf::MatMul(x, output.kernel), output.bias);
  }

  static tf::Tensor Convolve(const tf::Tensor& x, const Layer& layer) {
    return tf::Relu(tf::BiasAdd(
        tf::Conv2D(x, layer.kernel, {1, 1, 1, 1}, "SAME"), layer.bias));
  }

  Layer conv1{{3, 3, 1, 16}, 1}, conv2{{3, 3, 16, 32}, 2};
  Layer hidden{{4 * 4 * 32, 64}, 3}, output{{64, 10}, 4};
};

float Accuracy(const Model& model, const Digits& test) {
  std::vector<int> all(test.size());
  std::iota(all.begin(), all.end(), 0);
  Batch batch = Take(test, all);
  tf::Tensor found = tf::ArgMax(model.Logits(batch.images), tf::Tensor(1));
  const int64_t* digit = found.data<int64_t>();
  int right = 0;
  for (int64_t i = 0; i < test.size(); ++i) right += digit[i] == test.labels[i];
  return static_cast<float>(right) / test.size();
}

void Train(Model& model, tf::Adam& adam, tf::Variable& step,
           tf::Checkpoint& checkpoint, const Digits& data,
           const std::string& folder, int64_t steps) {
  std::vector<tf::Variable> variables = model.trainable_variables();
  auto train = tf::function<2>([&](const std::vector<tf::Tensor>& in) {
    tf::GradientTape tape;
    auto loss =
        tf::SparseSoftmaxCrossEntropyWithLogits(model.Logits(in[0]), in[1])
            .loss;
    tf::Tensor mean = tf::Mean(loss, tf::Tensor(0));
    adam.Apply(tape.gradient(mean, variables), variables);
    return mean;
  });
  tf::EventFileWriter summary(folder);
  int64_t per_epoch = data.size() / kBatch;
  std::vector<int> order;
  int64_t ordered = -1;
  for (int64_t i = step.value().item<int64_t>(); i < steps; ++i) {
    if (i / per_epoch != ordered) {
      ordered = i / per_epoch;
      order = Order(data.size(), ordered);
    }
    auto first = order.begin() + i % per_epoch * kBatch;
    Batch batch = Take(data, std::vector<int>(first, first + kBatch));
    float loss = train(batch.images, batch.labels).item<float>();
    step.assign_add(tf::Tensor(int64_t{1}));
    if ((i + 1) % kSaveEvery == 0 || i + 1 == steps) {
      summary.scalar("loss", loss, i + 1);
      summary.flush();
      checkpoint.save(folder + "/ckpt");
      std::printf("\rstep %lld/%lld  loss %.4f ", static_cast<long long>(i + 1),
                  static_cast<long long>(steps), loss);
      std::fflush(stdout);
    }
  }
  std::printf("\n");
}

int main(int argc, char** argv) {
  std::string folder = "digits", data = "examples/data/digits.bin";
  bool evaluate = false;
  int64_t steps = kSteps;
  for (int i = 1; i < argc; ++i) {
    bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--evaluate"))
      evaluate = true;
    else if (!std::strcmp(argv[i], "--folder") && more)
      folder = argv[++i];
    else if (!std::strcmp(argv[i], "--data") && more)
      data = argv[++i];
    else if (!std::strcmp(argv[i], "--steps") && more)
      steps = atoll(argv[++i]);
    else {
      std::fprintf(stderr,
                   "usage: train_digits [--folder F] [--data FILE] "
                   "[--steps N] [--evaluate]\n");
      return 2;
    }
  }
  try {
    Digits train, test;
    Load(data, &train, &test);
    Model model;
    tf::Adam adam(0.001f);
    tf::Variable step(tf::Tensor(int64_t{0}), "step", /*trainable=*/false);
    adam.MakeSlots(model.trainable_variables());
    tf::Checkpoint checkpoint(
        {{"step", step}, {"model", model}, {"optimizer", adam}});
    checkpoint.set_max_to_keep(3);
    std::string latest = tf::Checkpoint::latest(folder);
    if (!latest.empty()) {
      checkpoint.restore(latest);
      std::printf("restored %s\n", latest.c_str());
    } else if (evaluate) {
      std::fprintf(stderr, "train_digits: no checkpoint in %s\n",
                   folder.c_str());
      return 1;
    }
    if (!evaluate) Train(model, adam, step, checkpoint, train, folder, steps);
    std::printf("test accuracy: %.4f\n", Accuracy(model, test));
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "train_digits: %s\n", e.what());
    return 1;
  }
  return 0;
}
